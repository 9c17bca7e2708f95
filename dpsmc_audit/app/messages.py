"""Word an error in one line."""

from __future__ import annotations

from traceback import walk_tb

from hydra.errors import HydraException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from dpsmc_audit.errors import ParameterError

__all__ = ["one_line", "unknown_to_hydra"]


def one_line(error: BaseException) -> str:
    """Word an error for the user.

    Parameters
    ----------
    error : BaseException
        Any error.

    Returns
    -------
    str
        Its message in one line. The type comes first, unless the message is written for users.
    """
    plain = isinstance(error, (ParameterError, HydraException, OmegaConfBaseException, OSError)) or _of_hydra(error)
    text = f"{error}" if plain else f"{type(error).__name__}: {error}"
    text = text.replace("LexerNoViableAltException:", "cannot read the override")  # Hydra shows its parser's exception
    lines = text.splitlines()
    if isinstance(error.__cause__, OmegaConfBaseException):  # Hydra puts the reason into the cause
        lines += f"{error.__cause__}".splitlines()[:1]
    joined = " ".join(line.strip() for line in lines if line.strip(" ^"))
    return joined.encode("utf-8", "backslashreplace").decode()  # a message can hold bytes that are no text


def unknown_to_hydra(error: BaseException) -> str | None:
    """Find the key that Hydra does not know.

    Parameters
    ----------
    error : BaseException
        Any error.

    Returns
    -------
    str or None
        The key, if an unknown key is the reason of the error.
    """
    reason = error.__cause__ or error.__context__
    if isinstance(error, HydraException) and isinstance(reason, (ConfigAttributeError, ConfigKeyError)):
        return reason.full_key
    return None


def _of_hydra(error: BaseException) -> bool:
    """Tell whether Hydra raised the error: some of its refusals are plain exceptions."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and f"{frames[-1].f_globals.get('__name__')}".startswith(("hydra.", "omegaconf."))
