"""The order in which a verification uses recorded samples: random unless the file's own order is asked for.

A file can be sorted, by outcome or by anything that goes with it. A sequential test that reads it from the top answers
for its first lines. In random order the first k samples are k drawn from the whole file without replacement.

The order is drawn from the entropy that draws L, behind the boundary. It is a secret like L: it is not stored, not
released and not a function of any seed (but for insecure=true, which says so).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.models.sources import BATCH, Batch, Source, SourceError
from dpsmc_audit.verify.entropy import Entropy

__all__ = ["Shuffled", "in_order", "order_words", "shuffle"]

FOR_INDEPENDENT = "error levels and privacy numbers are for independent samples"
RANDOM = (
    "recorded, used in random order: every order was equally likely, drawn from {drawn}. "
    "Such samples are exchangeable; they are independent only if they were recorded independently. "
    f"The {FOR_INDEPENDENT}; nothing is claimed for samples that are only exchangeable"
)
FILE = (
    f"recorded, used in the order of the file (model.order=file). The {FOR_INDEPENDENT}; "
    "nothing is claimed where the order of the file has to do with the outcomes"
)


def order_words(order: str, *, seeded: bool) -> str:
    """What a release says of the order of recorded samples."""
    drawn = "a seed" if seeded else "the operating system's entropy"
    return FILE if order == "file" else RANDOM.format(drawn=drawn)


def shuffle(items: NDArray[Any], begin: int, end: int, entropy: Entropy) -> None:
    """Decide which items stand at the places from `begin` to before `end` (Fisher and Yates), in place.

    Each place takes one of the items that no earlier place has taken, all equally likely. Places are to be decided
    from the first one on; those that nobody looks at need not be decided.

    Parameters
    ----------
    items
        The items; what stands before `begin` was decided by earlier calls.
    begin, end
        The places to decide; those beyond the last item are left out.
    entropy
        Where the choices come from.

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
    """The samples of a source that ends, in random order, each of them once.

    All samples are read before the first one is used, so a sample that cannot be had is met whatever the order. Of each
    one byte is kept, its truth value: its number would take more. Traces are let go of once they are evaluated.

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
        """The seed goes to the source; the order has nothing to do with it."""
        read = bytearray()
        for batch in self.source.batches(seed):
            read += batch.bits.astype(np.bool_).tobytes()
        outcomes = np.frombuffer(read, np.bool_)
        for begin in range(0, outcomes.size, BATCH):
            shuffle(outcomes, begin, begin + BATCH, self.entropy)
            yield Batch(outcomes[begin : begin + BATCH].copy())


def in_order(source: Source, order: str | None, entropy: Entropy) -> Source:
    """The source as a verification uses it; `order` is None for a source that draws new samples."""
    if source.repeatable:
        if order is not None:
            raise SourceError("an order is for recorded samples: a model draws its samples one after the other")
        return source
    if order is None:
        raise SourceError("recorded samples need an order, random or file")
    return source if order == "file" else Shuffled(source, entropy)
