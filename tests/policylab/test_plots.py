# SPDX-License-Identifier: MIT
"""The figures' style: intervals, markers besides colour, and settings that come back."""

import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)

from policylab.plots import (  # noqa: E402
    COLOURS,
    LINES,
    MARKERS,
    SINGLE_RUN,
    _shorten,
    house_style,
    mean_interval,
    plot_runs,
    series_style,
    show,
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def luminance(colour: str) -> float:
    """WCAG's relative luminance of a colour."""
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_interval_of_five_numbers_by_hand():
    # 1..5: mean 3, s = sqrt(2.5); the 97.5 % quantile of t with 4 degrees of freedom is 2.776445.
    mean, half_width = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0
    assert half_width == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-6)


def test_interval_is_per_column():
    mean, half_width = mean_interval([[1.0, 10.0], [3.0, 10.0]])
    assert mean.tolist() == [2.0, 10.0]
    assert half_width[1] == 0.0


def test_interval_covers_the_mean_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(7.0, 2.0, size=(5, 20_000))
    mean, half_width = mean_interval(draws, level=0.9)
    covered = np.mean(np.abs(mean - 7.0) <= half_width)
    # Standard error of a share of 0.9 over 20,000 draws: 0.0021.
    assert abs(covered - 0.9) < 4 * 0.0021


@pytest.mark.parametrize("runs", [3.0, [1.0], [[1.0, 2.0]]])
def test_interval_of_one_run_is_refused(runs):
    with pytest.raises(ValueError, match="S >= 2"):
        mean_interval(runs)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_interval_level_is_a_probability(level):
    with pytest.raises(ValueError, match="level"):
        mean_interval([1.0, 2.0], level=level)


def test_series_differ_in_colour_marker_and_dash():
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(set(map(str, LINES))) == len(COLOURS)
    assert series_style(len(COLOURS)) == series_style(0)


def test_colours_have_contrast_on_white():
    # WCAG 2.1, 1.4.11: at least 3:1 for graphics.
    assert all(1.05 / (luminance(colour) + 0.05) >= 3.0 for colour in (*COLOURS, SINGLE_RUN))


def test_style_leaves_no_trace_and_touches_nothing_else():
    before = dict(matplotlib.rcParams)
    with house_style():
        assert matplotlib.rcParams["axes.spines.top"] is False
        matplotlib.rcParams["interactive"] = not before["interactive"]
    # What a notebook's backend sets with the first figure has to stay.
    assert matplotlib.rcParams["interactive"] is not before["interactive"]
    matplotlib.rcParams["interactive"] = before["interactive"]
    assert dict(matplotlib.rcParams) == before


def test_style_comes_back_after_an_error():
    before = matplotlib.rcParams["figure.dpi"]
    with pytest.raises(RuntimeError), house_style():
        raise RuntimeError
    assert matplotlib.rcParams["figure.dpi"] == before


def test_runs_are_drawn_as_mean_and_band():
    with house_style():
        _, axes = plt.subplots()
        plot_runs(axes, [0, 1, 2], [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]], label="both", index=1)
    (line,) = axes.lines
    assert line.get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert line.get_marker() == MARKERS[1] and line.get_label() == "both"
    # Two runs 2 apart: s = sqrt(2), and t's quantile with 1 degree of freedom is 12.7062.
    low = axes.collections[0].get_paths()[0].vertices[:, 1].min()
    assert low == pytest.approx(1.0 - 12.7062, abs=1e-3)


def drawn(values=(0, 1), alt="The line rises from 0 to 1, and that is all that it does."):
    with house_style():
        fig, ax = plt.subplots()
        ax.plot([0, 1], values)
    return show(fig, alt=alt)


def test_show_closes_the_figure_and_names_it():
    before = plt.get_fignums()
    shown = drawn(alt="The line rises from 0 to 1 <and> not &\n  beyond, as it should.")
    assert plt.get_fignums() == before
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    root = ElementTree.fromstring(bundle["image/svg+xml"])
    title = root.find("{http://www.w3.org/2000/svg}title").text
    assert title == shown.alt == "The line rises from 0 to 1 <and> not & beyond, as it should."


def test_equal_figures_give_equal_bytes_and_others_do_not():
    assert drawn().svg == drawn().svg
    assert drawn().svg != drawn(values=(1, 0)).svg


@pytest.mark.parametrize(
    "alt", ["", "  ", "A figure.", "a long line of words without a stop at all"]
)
def test_what_is_no_sentence_is_refused(alt):
    fig = plt.figure()
    with pytest.raises(ValueError, match="alt must say in a sentence"):
        show(fig, alt=alt)
    plt.close(fig)


def test_points_are_written_short_and_keep_their_place():
    numbers = np.random.default_rng(0).normal(size=2).tolist()
    long_form = f'<path d="M {numbers[0]} 1.5 L 2 {numbers[1]} L 3 4 M 1 1 "/>'
    short = _shorten(long_form)
    assert short == f'<path d="M {numbers[0]:.2f} 1.5 L 2 {numbers[1]:.2f} 3 4 M 1 1"/>'


def test_single_runs_are_drawn_behind_their_mean():
    with house_style():
        fig, ax = plt.subplots()
        plot_runs(ax, [0, 1], [[0, 1], [0, 3]], label="mean", singles=True)
    colours = [line.get_color() for line in ax.lines]
    plt.close(fig)
    assert colours == [SINGLE_RUN, SINGLE_RUN, COLOURS[0]]


def test_figure_keeps_the_style_although_it_is_drawn_after_the_block():
    # matplotlib makes ticks and grid lines while it draws; its own grid is #b0b0b0.
    svg = drawn().svg
    assert "#d9d9d9" in svg and "#b0b0b0" not in svg


def test_text_stays_text():
    with house_style():
        fig, axes = plt.subplots()
        axes.set_ylabel("loss (nats)")
    assert ">loss (nats)</text>" in show(fig, alt="An empty panel with a label on its y-axis.").svg


def test_a_shortened_line_goes_through_its_points():
    x = np.arange(50)
    with house_style():
        fig, axes = plt.subplots()
        axes.plot(x, x % 2, color=COLOURS[0])  # nothing of a zigzag can be left out
    svg = show(fig, alt="A line that goes up and down between 0 and 1, fifty times in all.").svg
    (line,) = re.findall(r'd="M ([\d. L]+)"[^>]*style="fill: none; stroke: #0072b2', svg)
    found = np.array(line.replace("L", "").split(), dtype=float).reshape(-1, 2)
    fig.set_dpi(72)  # SVG's unit is the point; its y goes down
    expected = axes.transData.transform(np.stack([x, x % 2], axis=1))
    expected[:, 1] = fig.get_size_inches()[1] * 72 - expected[:, 1]
    np.testing.assert_allclose(found, expected, atol=0.0051)


def test_forty_smooth_curves_stay_small():
    steps = np.linspace(0, 1, 300)
    runs = [steps**power for power in np.linspace(0.5, 3, 40)]
    with house_style():
        fig, axes = plt.subplots()
        plot_runs(axes, steps, runs, label="mean of 40", singles=True)
    assert (
        len(show(fig, alt="Forty curves rise from 0 to 1, each with a bend of its own.").svg) < 5e4
    )
