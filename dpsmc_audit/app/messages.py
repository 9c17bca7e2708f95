"""What the command says of an error: one line."""

from __future__ import annotations

from traceback import walk_tb

from hydra.errors import HydraException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from dpsmc_audit.errors import ParameterError

__all__ = ["one_line", "unknown_to_hydra"]


def one_line(error: BaseException) -> str:
    """One line for the user: Hydra puts the reason into the cause."""
    told = isinstance(error, (ParameterError, HydraException, OmegaConfBaseException, OSError)) or _of_hydra(error)
    text = f"{error}" if told else f"{type(error).__name__}: {error}"
    text = text.replace("LexerNoViableAltException:", "cannot read the override")  # Hydra shows its parser's exception
    cause = error.__cause__
    lines = [*text.splitlines(), *(f"{cause}".splitlines()[:1] if isinstance(cause, OmegaConfBaseException) else [])]
    told_in_one = " ".join(line.strip() for line in lines if line.strip(" ^"))
    return told_in_one.encode("utf-8", "backslashreplace").decode()  # bytes that are no text can be part of a message


def unknown_to_hydra(error: BaseException) -> str | None:
    """The key that Hydra did not find, where that is its reason; None otherwise."""
    reason = error.__cause__ or error.__context__
    if isinstance(error, HydraException) and isinstance(reason, (ConfigAttributeError, ConfigKeyError)):
        return reason.full_key
    return None


def _of_hydra(error: BaseException) -> bool:
    """Some of Hydra's refusals are plain exceptions; they are known by where they were raised."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and f"{frames[-1].f_globals.get('__name__')}".startswith(("hydra.", "omegaconf."))
