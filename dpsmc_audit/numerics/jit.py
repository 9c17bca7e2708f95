"""Compile kernels with Numba, which caches them on disk if it finds a folder that it can write to."""

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
    """Compile a function of numbers and arrays. Other threads can work while it runs.

    Numba keeps compiled code in ``NUMBA_CACHE_DIR``, beside the source or in the user's cache. If it can write to none
    of them, every process compiles again what it calls. A folder that anybody can write to is not used: anybody could
    put code there.

    Parameters
    ----------
    function : callable
        The kernel. Its compiled helpers must be in the same file: the cache does not notice edits in other files.
    error_model : {"python", "numpy"}
        With "numpy" a division by zero gives infinity or nan. With "python" it raises an error.

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
    """Tell whether there is a home. Without one Numba would make a folder named "~" in the current folder."""
    return bool(os.environ.get("NUMBA_CACHE_DIR")) or os.path.isabs(os.path.expanduser("~"))
