"""The two nouns that every audit is about: a test with its noise on a system, and the samples that change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsmc_audit.errors import in_order
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt

__all__ = ["Adjacent", "Setting"]


@dataclass(frozen=True)
class Setting:
    """A test with its noise, run on a system.

    Parameters
    ----------
    test : Sprt
        The sequential test and its bounds.
    mechanism : Mechanism
        The law of the noise L that is added to both bounds.
    p_phi : float
        The probability that a sample of the system satisfies the specification.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Sprt
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> Setting(test, Exponential.private(test, epsilon=0.01), p_phi=0.84).p_phi
    0.84
    """

    test: Sprt
    mechanism: Mechanism
    p_phi: float


@dataclass(frozen=True)
class Adjacent:
    """Two adjacent inputs of a setting: the entries are all 1 in one member and all 0 in the other.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    entries : tuple of int
        The samples that differ, counted from 1, in increasing order. `of` takes them in any order.

    Examples
    --------
    >>> from dpsmc_audit import NoNoise, Sprt
    >>> pair = Adjacent.of(Setting(Sprt(p=0.73, delta=0.01, alpha=0.01), NoNoise(), p_phi=0.84), [5, 2])
    >>> pair.entries, pair.forced(1)
    ((2, 5), {2: 1, 5: 1})
    """

    setting: Setting
    entries: tuple[int, ...] = (1,)

    @classmethod
    def of(cls, setting: Setting, entry: int | Sequence[int] = 1) -> Adjacent:
        """Sort and check the entries.

        Parameters
        ----------
        setting : Setting
            The test with its noise, and the system.
        entry : int or sequence of int
            One sample, or several that change together.

        Returns
        -------
        Adjacent
            The pair.

        Raises
        ------
        ParameterError
            If no sample is named, one is named twice, or one is below 1.
        """
        return cls(setting, in_order(entry))

    def forced(self, bit: int) -> dict[int, int]:
        """Return the value of every entry in one member.

        Parameters
        ----------
        bit : int
            The member: 1 or 0.

        Returns
        -------
        dict
            The bit, by entry.
        """
        return dict.fromkeys(self.entries, bit)
