"""The order in which a verification uses recorded samples: random, unless the user asks for the order of the file.

A file can be sorted, by outcome or by something related to it. A sequential test that reads it from the top then
decides by its first lines. In random order the first k samples are drawn from the whole file without replacement.

The child process draws the order from the entropy that also draws L. The order is a secret like L: it is not stored,
not released and not a function of any seed (except with insecure=true, and the release then says so).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.models.sources import BATCH, Batch, Source, SourceError
from dpsmc_audit.verify.entropy import Entropy

__all__ = ["Shuffled", "order_words", "ordered", "shuffle"]


def order_words(order: str, *, seeded: bool) -> str:
    """Describe the order of recorded samples for a release.

    Parameters
    ----------
    order : {"random", "file"}
        The order.
    seeded : bool
        Whether it was drawn from a seed.

    Returns
    -------
    str
        The description.
    """
    independent = "The error levels and privacy numbers are for independent samples; nothing is claimed"
    if order == "file":
        return (
            f"recorded, used in the order of the file (model.order=file). {independent} "
            "where the order of the file has to do with the outcomes"
        )
    drawn = "a seed" if seeded else "the operating system's entropy"
    return (
        f"recorded, used in random order: every order was equally likely, drawn from {drawn}. "
        "Such samples are exchangeable; they are independent only if they were recorded independently. "
        f"{independent} for samples that are only exchangeable"
    )


def shuffle(items: NDArray[Any], begin: int, end: int, entropy: Entropy) -> None:
    """Draw the items at the places from `begin` to before `end`, in place (Fisher and Yates).

    Each place takes one of the items that no earlier place has taken, all equally likely. Places must be drawn from the
    first one on. Places that are never read need not be drawn.

    Parameters
    ----------
    items : ndarray
        The items. Those before `begin` were drawn by earlier calls.
    begin, end : int
        The places to draw. Places beyond the last item are ignored.
    entropy : Entropy
        The source of integers.

    Examples
    --------
    >>> from dpsmc_audit.verify.entropy import SystemEntropy
    >>> items = np.arange(5)
    >>> shuffle(items, 0, 5, SystemEntropy())
    >>> sorted(items.tolist())
    [0, 1, 2, 3, 4]
    """
    for place in range(begin, min(end, items.size)):
        taken = place + entropy.below(items.size - place)
        items[place], items[taken] = items[taken], items[place]


@dataclass(frozen=True, eq=False)
class Shuffled:
    """The samples of a source that ends, each of them once, in random order.

    All samples are read before the first one is used, so a sample that cannot be read fails the run whatever the order.
    One byte is kept for each sample, its truth value. Traces are dropped after their evaluation.

    Parameters
    ----------
    source : Source
        The samples.
    entropy : Entropy
        Draws the order.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpsmc_audit.models.recorded import Recorded
    >>> from dpsmc_audit.verify.entropy import SystemEntropy
    >>> path = Path(tempfile.mkdtemp()) / "outcomes.csv"
    >>> _ = path.write_text("1\\n" * 3 + "0\\n" * 7)
    >>> sum(batch.bits.sum() for batch in Shuffled(Recorded(str(path)), SystemEntropy()).batches(seed=0))
    np.int64(3)
    """

    name: ClassVar[str] = "shuffled"
    repeatable: ClassVar[bool] = False
    source: Source
    entropy: Entropy

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yield the samples in random order.

        Parameters
        ----------
        seed : int
            The seed of the source. The order does not depend on it.

        Yields
        ------
        Batch
            The next samples, without traces.

        Raises
        ------
        SourceError
            If the source cannot be read. No sample is yielded before.
        """
        read = bytearray()
        for batch in self.source.batches(seed):
            read += batch.bits.astype(np.bool_).tobytes()
        outcomes = np.frombuffer(read, np.bool_)
        for begin in range(0, outcomes.size, BATCH):
            shuffle(outcomes, begin, begin + BATCH, self.entropy)
            yield Batch(outcomes[begin : begin + BATCH].copy())


def ordered(source: Source, order: str | None, entropy: Entropy) -> Source:
    """Put a source into the order of a verification.

    Parameters
    ----------
    source : Source
        The samples.
    order : {"random", "file"} or None
        None for a source that draws new samples.
    entropy : Entropy
        Draws a random order.

    Returns
    -------
    Source
        The source to use.

    Raises
    ------
    SourceError
        If a model that draws its samples has an order, or recorded samples have none.
    """
    if source.repeatable:
        if order is not None:
            raise SourceError("an order is for recorded samples: a model draws its samples one after the other")
        return source
    if order is None:
        raise SourceError("recorded samples need an order, random or file")
    return source if order == "file" else Shuffled(source, entropy)
