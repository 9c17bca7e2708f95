"""One look for all figures: colours that survive colour-blindness and grey printing, sizes for a column of text."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["BLUE", "DARK_BLUE", "GREEN", "GREY", "ORANGE", "RED", "new_figure", "tidy"]

RED, BLUE, GREEN, GREY = "#b2182b", "#92c5de", "#1b7837", "0.45"
ORANGE, DARK_BLUE = "#f4a582", "#2166ac"


def new_figure(width: float, height: float) -> Figure:
    """Make a figure that needs no display.

    Parameters
    ----------
    width, height : float
        The size in inches.

    Returns
    -------
    Figure
        An empty figure.
    """
    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: Axes) -> None:
    """Remove the frame above and to the right, and make the tick labels small.

    Parameters
    ----------
    axes : Axes
        The axes to change.
    """
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)
