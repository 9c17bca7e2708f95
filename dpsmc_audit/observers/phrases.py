"""Numbers, samples and factors as phrases of a sentence. Every text is plain ASCII."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpsmc_audit.evidence.verdict import Detectable

__all__ = ["brief", "could_have_shown", "factors", "named_entries"]


def brief(value: float, digits: int = 3) -> str:
    """Write a number for a reader: only 0 itself is shown as 0, an infinity is a word.

    Parameters
    ----------
    value : float
        The number; nan is called unknown.
    digits : int
        Significant digits.

    Returns
    -------
    str
        The number as text.

    Examples
    --------
    >>> brief(0.0099270), brief(1322.7469, 5), brief(3.14159e-12), brief(math.inf), brief(0.0), brief(2e6)
    ('0.00993', '1322.7', '3.14e-12', 'infinite', '0', '2,000,000')
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if abs(value) >= 1e4 and value == round(value):
        return f"{value:,.0f}"
    text = f"{value + 0.0:.{digits}g}"
    return text if "e+" not in text else f"{value:,.0f}" if abs(value) < 1e12 else text


def named_entries(entries: Sequence[int]) -> str:
    """Name the samples that differ between the two members.

    Parameters
    ----------
    entries : sequence of int
        The samples, counted from 1.

    Returns
    -------
    str
        Their names.

    Examples
    --------
    >>> named_entries([3]), named_entries([1, 4, 5])
    ('sample 3', 'samples 1, 4 and 5 together')
    """
    *others, last = entries
    return f"samples {', '.join(f'{n}' for n in others)} and {last} together" if others else f"sample {last}"


def could_have_shown(could: Detectable) -> str:
    """Say which violation these runs would have found: at the asked probability, else at the smallest that shows any.

    Parameters
    ----------
    could : Detectable
        The smallest violations that would have been found with probability 0.9.

    Returns
    -------
    str
        A sentence without its capital.

    Examples
    --------
    >>> could_have_shown(Detectable(0.01, None, None))
    'so few runs cannot show any violation.'
    """
    seen = {p: x for p, x in {**could.by_probability, could.probability: could.epsilon}.items() if x is not None}
    if seen:
        p = could.probability if could.epsilon is not None else min(seen)
        factor = brief(math.exp(min(seen[p], 700.0)))
        what = f"an epsilon of {brief(seen[p])} (a factor of {factor}) on an event of probability {p:g}"
    elif could.delta is not None:
        what = f"an event of probability {brief(could.delta)} that is impossible with the other value of x"
    else:
        return "so few runs cannot show any violation."
    return f"they would have shown {what} in nine of ten audits, if the event is {could.events}."


def factors(claimed: float, found: float) -> tuple[str, str]:
    """Write e^claimed and, rounded down, e^found, with as many digits as it takes to distinguish them.

    Parameters
    ----------
    claimed, found : float
        Two values of epsilon.

    Returns
    -------
    tuple of str
        Both factors. The second one never exceeds the true one.
    """
    texts = ("", "")
    for digits in range(3, 9):
        allowed = brief(math.exp(claimed), digits) if claimed < 14 else "a million and more"
        texts = allowed, brief(_down(math.exp(found), digits), digits) if found < 14 else "a million"
        if texts[0] != texts[1]:
            break
    return texts


def _down(value: float, digits: int) -> float:
    """Round a value down to so many digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.floor(value / step) * step
