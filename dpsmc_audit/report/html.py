"""Pages and drawings from templates: every value is escaped, and a page fetches nothing from anywhere."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsmc_audit.evidence.intervals import percent
from dpsmc_audit.observers.phrases import brief
from dpsmc_audit.report.scales import brief_delta, path, plain

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

__all__ = ["REPORT", "draw", "greek", "render"]

REPORT = "report.html"

_TEMPLATES = Path(__file__).parent / "templates"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,  # of everything: values come from users and their files
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"brief": brief, "brief_delta": brief_delta, "percent": percent, "greek": greek}
    environment.filters |= {"path": path, "plain": plain}
    for name in ("report.css", "report.js"):  # the project's own, no templates: their braces are theirs
        text = (_TEMPLATES / name).read_text(encoding="utf-8")
        environment.globals[name.replace("report.", "")] = Markup(text)
    return environment


@lru_cache(maxsize=1)
def _drawings() -> Environment:
    """As for pages, but numbers are pixels: hundredths are enough."""
    return _environment().overlay(
        finalize=lambda value: f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
    )


def greek(text: str) -> str:
    """Write the names of privacy's parameters as symbols.

    Parameters
    ----------
    text : str
        Prose of `dpsmc_audit.observers.sentence`.

    Returns
    -------
    str
        The same with Greek letters.

    Examples
    --------
    >>> greek("no finite epsilon holds where p_phi = 0.84")
    'no finite ε holds where p_φ = 0.84'
    """
    return text.replace("epsilon", "ε").replace("delta", "δ").replace("p_phi", "p_φ")


def render(template: str, **context: Any) -> str:
    """Fill a template of `templates/`; a name that is missing is an error.

    Parameters
    ----------
    template : str
        Name of the file.
    **context
        The values. Every one of them is escaped.

    Returns
    -------
    str
        A page that stands alone.
    """
    return _environment().get_template(template).render(**context)


def draw(template: str, **context: Any) -> Markup:
    """Fill a template of a drawing.

    Parameters
    ----------
    template : str
        Name of the file.
    **context
        The values. Every one of them is escaped, and numbers are rounded to hundredths.

    Returns
    -------
    Markup
        An element of SVG.
    """
    from markupsafe import Markup

    return Markup(_drawings().get_template(template).render(**context))
