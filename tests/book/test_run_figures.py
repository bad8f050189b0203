# SPDX-License-Identifier: MIT
"""Figures of runs: inline, named by their finding, in colours that follow the page's mode."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import run_figure

from policylab import plots

STYLES = Path(__file__).resolve().parents[2] / "book" / "_static" / "figures.css"
# What the theme paints behind a page: white, and in dark mode this grey.
PAGE = {"light": "#ffffff", "dark": "#121212"}


def figure(body: str, title: str = "<title>It rises to 3.</title>") -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="72pt" height="36pt" viewBox="0 0 72 36">{title}'
        f'<defs><style type="text/css">*{{stroke-linejoin: round}}</style></defs>{body}</svg>'
    )


def variables(text: str) -> dict[str, str]:
    return dict(re.findall(r"(--figure-[\w-]+): (#[0-9a-f]{6});", text))


def modes() -> dict[str, dict[str, str]]:
    light, dark = STYLES.read_text(encoding="utf-8").split("@media screen")
    return {"light": variables(light), "dark": variables(light) | variables(dark)}


def contrast(one: str, other: str) -> float:
    """WCAG 2.1's contrast ratio of two colours #rrggbb."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_every_colour_of_the_library_has_a_variable():
    named = {*plots.COLOURS, plots.SINGLE_RUN, plots.GRID, "#ffffff", "#000000", "none"}
    assert set(run_figure.COLOURS) == named
    light = modes()["light"]
    for colour in (*plots.COLOURS, plots.SINGLE_RUN, plots.GRID):
        name = run_figure.COLOURS[colour].removeprefix("var(").removesuffix(")")
        assert light[name] == colour


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_lines_stand_out_from_the_page(mode):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    found = {
        name: contrast(value, PAGE[mode])
        for name, value in modes()[mode].items()
        if name != "--figure-grid"  # only guides the eye
    }
    assert len(found) == len(plots.COLOURS) + 1
    assert {name: ratio for name, ratio in found.items() if ratio < 3} == {}


def test_colours_become_variables_and_black_the_page_s_colour():
    text = run_figure.inline_figure(
        figure(
            '<path d="M 0 0" style="fill: none; stroke: #0072b2; stroke-width: 2"/><text>a</text>'
            '<g style="fill: #d55e00"><text>b</text></g><rect width="9"/>'
        ),
        prefix="f",
    )
    assert 'fill="none" stroke="var(--figure-1)" stroke-width="2"' in text
    # What matplotlib draws in black has no fill: it takes the root's, or that of its group.
    assert re.search(r'<svg [^>]*fill="currentColor"', text)
    assert '<text>a</text><g fill="var(--figure-2)"><text>b</text></g><rect width="9" />' in text
    assert "style" not in text


def test_the_title_becomes_the_name():
    text = run_figure.inline_figure(figure("", "<title>It\n rises.</title>"), prefix="f")
    assert 'aria-label="It rises."' in text and 'role="img"' in text
    assert "<title>" not in text
    assert 'width="96"' in text and "height=" not in text  # 72 points are 96 pixels


def test_only_ids_in_use_stay_and_they_are_prefixed():
    body = (
        '<g id="patch_1"/><clipPath id="clip"><rect/></clipPath><defs><path id="dot"/></defs>'
        '<g clip-path="url(#clip)"><use xlink:href="#dot"/></g>'
    )
    text = run_figure.inline_figure(figure(body), prefix="f2")
    assert re.findall(r' id="([^"]+)"', text) == ["f2-clip", "f2-dot"]
    assert 'clip-path="url(#f2-clip)"' in text and 'href="#f2-dot"' in text
    assert "patch_1" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (figure("", ""), "no alternative text"),
        (figure("", "<title> </title>"), "no alternative text"),
        (figure('<path style="stroke: #999999"/>'), "#999999 has no value for dark pages"),
        (figure('<path style="fill: red"/>'), "red has no value"),
        (figure('<path style="filter: blur(2px)"/>'), "'filter' has no attribute"),
    ],
)
def test_what_would_not_follow_the_mode_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        run_figure.inline_figure(text, prefix="f")


def test_a_real_figure_passes():
    import matplotlib.pyplot as plt

    with plots.house_style():
        fig, ax = plt.subplots()
        runs = [[0, 1, 2], [1, 2, 4]]
        for index in range(5):
            plots.plot_runs(ax, [0, 1, 2], runs, label=f"$x_{index}$", index=index, singles=True)
        ax.set_yscale("symlog")
        ax.legend()
    drawn = plots.show(fig, alt="All curves rise, to 3 on average, and no other thing happens.")
    text = run_figure.inline_figure(drawn.svg, prefix="f")
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', text)) <= set(run_figure.COLOURS.values())


PAGE_OF_TWO_FIGURES = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

# Page

See {numref}`fig-one`.

```{code-cell} python
---
mystnb:
  figure:
    name: fig-one
    caption: What is drawn.
---
import matplotlib.pyplot as plt
from policylab.plots import house_style, show

with house_style():
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1], color="#0072b2")
show(fig, alt=f"The line rises from 0 to {1:.2f} and bends nowhere on its way.")
```

```{code-cell} python
with house_style():
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1], color="#abcdef")
show(fig, alt="A line in a colour that nobody has thought of for dark pages.")
```
"""


def build(source: Path, target: Path, builder: str) -> str:
    """Build with myst-nb and the transform alone; returns the warnings."""
    options = {
        "extensions": "myst_nb,run_figure",
        "numfig": "1",
        "nb_execution_mode": "cache",
        "nb_execution_cache_path": str(source.parent / "cache"),
    }
    settings = [word for name, value in options.items() for word in ("-D", f"{name}={value}")]
    command = [sys.executable, "-m", "sphinx", "-q", "-C", "-b", builder, *settings]
    paths = [str(STYLES.parents[1] / "_ext"), str(STYLES.parents[2])]
    done = subprocess.run(
        [*command, str(source), str(target)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_page_s_figures_are_put_inline_and_a_foreign_colour_is_told(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text(PAGE_OF_TWO_FIGURES, encoding="utf-8")
    warnings = build(tmp_path / "pages", tmp_path / "html", "html")
    told = [line for line in warnings.splitlines() if "WARNING: figure" in line]
    assert len(told) == 1 and re.search(r"index\.md.*figure 2 of this page", told[0])
    assert "#abcdef has no value for dark pages" in told[0]
    text = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    figure = re.search(r'<figure[^>]* id="fig-one">.*?</figure>', text, re.S)[0]
    assert 'aria-label="The line rises from 0 to 1.00' in figure and "var(--figure-1)" in figure
    assert "<img" not in figure and "Fig. 1" in figure and "What is drawn." in figure
    assert re.search(r'See <a [^>]*href="#fig-one"><span[^>]*>Fig. 1</span></a>', text)
    # Where a picture cannot be inline, its text stands in for it.
    build(tmp_path / "pages", tmp_path / "text", "text")
    assert "The line rises from 0 to 1.00" in (tmp_path / "text" / "index.txt").read_text()
