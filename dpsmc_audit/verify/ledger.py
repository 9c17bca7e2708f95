"""A ledger of releases: how many there were about the same people, and what they leak together.

A ledger is a file that only grows, a line for each attempt. An attempt is on disk before its run starts, because a run
that is killed may have released its result. One ledger is for data about the same people: its budget is for all
attempts, whatever the file, so a file with one changed sample does not get a new budget.

Each line also holds a tag of the data, by which the owner can count the attempts on one file. It is keyed and salted:
without the key, two lines do not even show whether they are about the same data. The key is in a file beside the
ledger that only its owner can read. Whoever can read it can test guesses of small data. It also seals the lines: a line
that was changed or removed is noticed, except at the end. A ledger does not stop a person who can delete it.

What k releases leak together is at most the sum of their bounds (epsilon, delta). Given all other samples the noise of
each release is independent, and each satisfies its inequality with a delta that depends on the other samples. For fixed
other samples basic composition adds epsilons and deltas. The average over the other samples adds the proven bounds. So
the sum holds if samples are independent and no parameter was chosen by the result of an earlier release.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dpsmc_audit.errors import ParameterError, regular, require

__all__ = ["Ledger", "Spent", "file_digest"]

SLACK = 1e-9
"""By how much of it a budget may be exceeded: sums of decimal numbers are rounded."""
KEY_SIZE = 64
"""In bytes: 256 random bits as hexadecimal digits."""


@dataclass(frozen=True)
class Spent:
    """What the releases of a ledger leak together.

    Parameters
    ----------
    releases : int
        The number of attempts.
    epsilon, delta : float
        The sums of their bounds.
    budget : float or None
        The largest sum of epsilons.
    """

    releases: int
    epsilon: float
    delta: float
    budget: float | None

    @property
    def words(self) -> str:
        """One sentence for the release."""
        if self.delta >= 1.0:
            return f"no bound is left for the {self.releases} releases in this ledger together"
        return (
            f"the {self.releases} releases in this ledger together leak at most (epsilon, delta) = "
            f"({self.epsilon:.6g}, {self.delta:.3g}) about one sample: their proven bounds added up; this holds for "
            "independent samples if no parameter was chosen by an earlier result"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the part of the release."""
        return {"releases": self.releases, "epsilon": self.epsilon, "delta": self.delta, "budget": self.budget}


def file_digest(path: Path) -> bytes | None:
    """Compute the digest of a file of samples.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bytes or None
        The digest. None for a pipe, which can be read only once, and for a file that cannot be read.
    """
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None


@dataclass(frozen=True)
class Ledger:
    """A ledger on disk.

    Parameters
    ----------
    path : Path
        The file. Its key is in a file of the same name with ``.key`` appended.
    budget : float, optional
        The largest sum of epsilons. The first release sets it for ever; later ones may omit it.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "ledger", budget=1.0)
    >>> for _ in range(3):
    ...     spent = ledger.record(0.4, 0.1, b"the digest of a file")
    Traceback (most recent call last):
    dpsmc_audit.errors.ParameterError: ledger: 2 releases took epsilon = 0.8 of a budget of 1, another 0.4 is too much
    >>> ledger.attempts(b"the digest of a file"), ledger.attempts(b"of another")
    (2, 0)
    """

    path: Path
    budget: float | None = None

    def record(self, epsilon: float, delta: float, data: bytes | None) -> Spent:
        """Record an attempt, if the budget allows it. It is on disk when this returns.

        Parameters
        ----------
        epsilon, delta : float
            The proven bound of the release.
        data : bytes or None
            The digest of the data, if there is one.

        Returns
        -------
        Spent
            All releases together, with this one.

        Raises
        ------
        ParameterError
            If the budget does not allow another release, or if the ledger is damaged or in use.
        OSError
            If the attempt cannot be written.
        """
        with self._locked():
            key, salt = self._key(), secrets.token_hex(16)
            lines = self._lines(key)
            spent = self._allowed(lines, epsilon, delta)
            entry: dict[str, Any] = {"release": spent.releases, "epsilon": epsilon, "delta": delta}
            entry |= {"budget": spent.budget, "salt": salt, "data": None if data is None else _tag(key, salt, data)}
            self._append(entry | {"seal": _seal(key, lines[-1]["seal"] if lines else "", entry)})
        return spent

    def attempts(self, data: bytes) -> int:
        """Count the attempts on the same data. For the owner of the key only: the number tells whether data are equal.

        Parameters
        ----------
        data : bytes
            The digest of the data.

        Returns
        -------
        int
            The number of attempts.

        Raises
        ------
        ParameterError
            If the ledger is damaged or in use.
        """
        with self._locked():
            key = self._key()
            return sum(line["data"] == _tag(key, line["salt"], data) for line in self._lines(key))

    @property
    def _key_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.key")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from the ledger."""
        require(self.path.name != "" and not self.path.is_dir(), f"ledger: {self.path} is a folder")
        regular(self.path)
        require(self.path.parent.is_dir(), f"ledger: there is no folder {self.path.parent}")
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=10)
        try:
            lock.acquire()
        except Timeout:
            raise ParameterError(f"ledger: another release is using {self.path.name}") from None
        try:
            yield
        finally:
            lock.release()

    def _key(self) -> bytes:
        """Read the key, or make it for a new ledger.

        The ledger is made before its key, so a key without a ledger shows that the ledger was removed.
        """
        gone = self._key_path.exists() and not self.path.exists()
        require(not gone, f"ledger: {self.path.name} was removed, and its key is still there")
        if not self._texts():  # a process that was killed may have left half of a key
            _write(self.path, 0, b"")
            if not self._key_path.exists() or self._key_path.stat().st_size != KEY_SIZE:
                _write(self._key_path, os.O_TRUNC, secrets.token_hex(KEY_SIZE // 2).encode())
        require(self._key_path.exists(), f"ledger: {self._key_path.name} is missing")
        return self._key_path.read_bytes()

    def _texts(self) -> list[bytes]:
        """All lines that were written to their end. A last one without an end was never followed by a run."""
        return self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else []

    def _lines(self, key: bytes) -> list[dict[str, Any]]:
        """Read all lines and check their seals."""
        found, seal = list[dict[str, Any]](), ""
        for text in self._texts():
            try:
                line = json.loads(text)
                said = line.pop("seal")
                seal = _seal(key, seal, line)
                whole = hmac.compare_digest(said, seal)
            except (ValueError, KeyError, TypeError, AttributeError):
                whole = False
            require(whole, f"ledger: line {len(found) + 1} of {self.path.name} was changed")
            found.append({**line, "seal": seal})
        return found

    def _allowed(self, lines: list[dict[str, Any]], epsilon: float, delta: float) -> Spent:
        """Add a release to those before it, or refuse it."""
        budget = lines[0]["budget"] if lines else self.budget
        kept = self.budget is None or self.budget == budget
        require(kept, f"ledger: its first release set budget={budget}, got budget={self.budget}")
        before = math.fsum(line["epsilon"] for line in lines)
        total = math.fsum([before, epsilon])
        deltas = math.fsum([*(line["delta"] for line in lines), delta])
        if budget is not None:
            used = f"ledger: {len(lines)} releases took epsilon = {before:.6g} of a budget of {budget:g}"
            require(total <= budget * (1.0 + SLACK), f"{used}, another {epsilon:g} is too much")
            require(deltas < 1.0, f"{used}; with another one their deltas add up to {deltas:.3g}, which is no bound")
        return Spent(len(lines) + 1, total, deltas, budget)

    def _append(self, line: dict[str, Any]) -> None:
        # a killed process may have left the beginning of a line
        os.truncate(self.path, sum(len(text) + 1 for text in self._texts()))
        _write(self.path, os.O_APPEND, json.dumps(line).encode() + b"\n")


def _tag(key: bytes, salt: str, data: bytes) -> str:
    return hmac.new(key, b"data" + salt.encode() + data, "sha256").hexdigest()


def _seal(key: bytes, before: str, entry: dict[str, Any]) -> str:
    content = json.dumps([before, entry], sort_keys=True)
    return hmac.new(key, b"line" + content.encode(), "sha256").hexdigest()


def _write(path: Path, how: int, content: bytes) -> None:
    """Write to a file of the owner and wait until it is on disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # else the name of a new file could be lost
    finally:
        os.close(folder)
