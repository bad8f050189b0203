# SPDX-License-Identifier: MIT
"""The house style of figures: one palette, markers besides colour, intervals over seeds.

A figure is drawn inside `with house_style():` and handed on by `show`, as an SVG that carries its
alternative text. The book puts that SVG inline and gives each colour named here a value for light
and one for dark pages (book/_static/figures.css), so a figure uses no other colours.
Importing this module changes nothing; `house_style()` is a context manager.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

# Okabe and Ito's colours that reach a contrast of 3:1 on white, told apart with any colour vision.
COLOURS = ("#0072b2", "#d55e00", "#007a5a", "#6a3d9a", "#333333")
MARKERS = ("o", "s", "^", "D", "v")
LINES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)))
SINGLE_RUN = "#8a8a8a"  # thin lines behind a mean; 3.5:1 on white
GRID = "#d9d9d9"  # only guides the eye, so it needs no contrast
ALT_LENGTH = 40  # characters; less cannot say what a figure shows

_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_PATH_DATA = re.compile(r'(?<= d=")[^"]*')

_STYLE = {
    "axes.axisbelow": True,
    "axes.facecolor": "white",
    "axes.grid": True,
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "figure.figsize": (6.4, 3.6),
    "font.family": "sans-serif",
    "font.size": 11,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.edgecolor": GRID,
    "legend.frameon": True,
    "legend.framealpha": 1.0,
    "legend.fontsize": 10,
    "lines.linewidth": 2.0,
    "lines.markersize": 6.0,
    "path.simplify_threshold": 0.3,  # points of a line that would move it by less are left out
    "savefig.facecolor": "white",
    # Text stays text: small, searchable in the page and in its PDF. The same data gives the same
    # bytes: without a salt, ids are random.
    "svg.fonttype": "none",
    "svg.hashsalt": "policylab",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw what is inside the block in the book's style; the caller's settings come back after.

    `rc_context` would also put back settings that are not the style's, such as `interactive`, which
    a notebook's backend sets with the first figure: later figures would not be shown.
    """
    before = {name: mpl.rcParams[name] for name in _STYLE}
    mpl.rcParams.update(_STYLE)
    try:
        yield
    finally:
        mpl.rcParams.update(before)


@dataclass(frozen=True)
class Drawing:
    """A finished figure: what `show` returns and a notebook displays."""

    svg: str
    alt: str

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"image/svg+xml": self.svg, "text/plain": self.alt}


def show(fig: Any, *, alt: str) -> Drawing:
    """Close a figure and return it as an SVG that a notebook displays.

    Write it as the last line of a cell, after the `with house_style():` block: a notebook displays
    the value of the last line only, and no line inside a `with`.

    Args:
        fig: a matplotlib Figure.
        alt: what the figure shows, in one or more sentences and with the numbers of the run, for
            those who cannot see it. It becomes the drawing's <title>.
    Returns: the drawing; equal figures give equal bytes.
    Raises: ValueError if alt is no sentence: shorter than ALT_LENGTH or without a full stop.
    """
    text = " ".join(alt.split())
    if len(text) < ALT_LENGTH or text[-1] not in ".!?":
        raise ValueError(
            f"alt must say in a sentence what the figure shows: at least {ALT_LENGTH} characters, "
            f"with a full stop; got {text!r}. State the finding and its numbers."
        )
    import matplotlib.pyplot as plt  # here: importing it chooses a backend

    file = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with house_style():  # matplotlib makes ticks and their grid lines while it draws
        fig.savefig(file, format="svg", metadata=nothing)
    plt.close(fig)
    head, tag, body = file.getvalue().partition("<svg ")
    attributes, end, body = body.partition(">")
    title = f"\n <title>{escape(text)}</title>"
    return Drawing(head + tag + attributes + end + title + _shorten(body), text)


def _shorten(svg: str) -> str:
    """Write the points of paths to hundredths of a point, and each command once for many points."""

    def shorter(data: re.Match[str]) -> str:
        words, command = [], ""
        for word in _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", data[0]).split():
            if word != command or word == "M":
                words.append(word)
            command = word if word.isalpha() else command
        return " ".join(words)

    return _PATH_DATA.sub(shorter, svg)


def series_style(index: int) -> dict[str, Any]:
    """Colour, marker and dash of the index-th series: three ways to tell it from the others."""
    which = index % len(COLOURS)
    return {"color": COLOURS[which], "marker": MARKERS[which], "linestyle": LINES[which]}


def mean_interval(
    runs: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over runs and the half-width of its t-interval.

    Source: Student's t with S - 1 degrees of freedom; standard error from the n - 1 deviation.

    Args:
        runs: (S, ...) one row a seed, S at least 2.
        level: probability that the interval covers the mean of a normal population, in (0, 1).
    Returns: mean (...) and half-width (...), both float64, in the unit of runs.
    Raises: ValueError if there are fewer than 2 runs or level is not in (0, 1).
    """
    values = np.asarray(runs, dtype=np.float64)
    if values.ndim == 0 or len(values) < 2:
        raise ValueError(f"runs must have shape (S, ...) with S >= 2; got {values.shape}.")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be in (0, 1); got {level}.")
    count = len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(count)
    return values.mean(axis=0), stdtrit(count - 1, 0.5 + level / 2) * error


def plot_runs(
    axes: Any,
    x: Sequence[float] | NDArray[Any],
    runs: ArrayLike,
    *,
    label: str,
    index: int = 0,
    markers: int = 8,
    level: float = 0.95,
    singles: bool = False,
) -> None:
    """Draw the mean of several runs with the band of its t-interval.

    Args:
        axes: a matplotlib Axes.
        x: (T,) positions.
        runs: (S, T) one row a seed.
        label: the series' name in the legend.
        index: which colour, marker and dash (see `series_style`).
        markers: about how many markers along the line.
        level: of the interval.
        singles: whether to draw each run as well, as a thin grey line behind the mean.
    """
    if singles:
        axes.plot(x, np.transpose(np.asarray(runs)), color=SINGLE_RUN, linewidth=0.6)
    mean, half_width = mean_interval(runs, level=level)
    style = series_style(index)
    step = max(1, len(mean) // markers)
    # Series start their markers at different places, so that lines that meet stay apart.
    axes.plot(x, mean, label=label, markevery=(index * step // 3, step), **style)
    axes.fill_between(
        x, mean - half_width, mean + half_width, color=style["color"], alpha=0.2, linewidth=0
    )
