"""Keep memory that documents needed from staying with the allocator, where that is glibc's: decision 0009."""

import ctypes
import gc
from typing import Any

_M_ARENA_MAX = -8
_ARENAS = 2


def keep_arenas_few() -> None:
    """Let threads share two arenas: each one of its own would keep the pieces of what passed through it."""
    mallopt = _allocator("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back_free_memory() -> None:
    """Return what nothing refers to any more to the allocator, and the allocator's free pages to the system."""
    gc.collect()
    malloc_trim = _allocator("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def _allocator(function: str) -> Any:
    return getattr(ctypes.CDLL(None), function, None)
