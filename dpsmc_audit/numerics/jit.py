"""How kernels are compiled: by Numba, which keeps them on disk where it finds a folder for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from numba import njit

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function, *, error_model: Literal["python", "numpy"] = "python") -> Dispatcher[Function]:
    """Compile a function of numbers and arrays; other threads can work while it runs.

    Numba keeps compiled code in ``NUMBA_CACHE_DIR``, beside the source or in the user's cache. Where it can write to
    none of them, every process compiles anew what it calls: code from a folder that anybody can write to would be
    anybody's code.

    Parameters
    ----------
    function
        The kernel. Its compiled helpers are defined in the same file: the cache does not notice edits in others.
    error_model
        "numpy" for divisions by zero that give infinity or nan, "python" for those that raise an error.

    Returns
    -------
    Dispatcher
        The compiled function.

    Examples
    --------
    >>> @kernel
    ... def twice(x):
    ...     return x + x
    >>> twice(3)
    6
    """

    def compiled(*, cache: bool) -> Dispatcher[Function]:
        found: Dispatcher[Function] = njit(function, cache=cache, nogil=True, error_model=error_model)
        return found

    try:
        return compiled(cache=_home_is_known())
    except RuntimeError:  # Numba found no folder that it can write to
        return compiled(cache=False)


def _home_is_known() -> bool:
    """Without a home Numba would make a folder named "~" where the process was started."""
    return bool(os.environ.get("NUMBA_CACHE_DIR")) or os.path.isabs(os.path.expanduser("~"))
