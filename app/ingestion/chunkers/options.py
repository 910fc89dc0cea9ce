"""Refuse chunking options that cannot work, before any document is cut."""

import difflib

from app.domain import ChunkingOptions
from app.errors import FieldError, InvalidRequest, UnknownField
from app.ingestion.chunkers.registry import CHUNKERS


def check_chunking(options: ChunkingOptions, window_tokens: int) -> None:
    """Raise `UnknownField` or `InvalidRequest` with a pointer below `/chunking`, for a model with this window."""
    if options.strategy not in CHUNKERS:
        nearest = difflib.get_close_matches(options.strategy, CHUNKERS, n=1)
        raise UnknownField(
            f"there is no chunking strategy {options.strategy!r}; there are {', '.join(CHUNKERS)}",
            hint=f"did you mean {nearest[0]}?" if nearest else None,
            errors=[_wrong("strategy", "unknown_field", f"must be one of {', '.join(CHUNKERS)}")],
        )
    wrong = _wrong_size(options, window_tokens)
    if wrong is not None:
        raise InvalidRequest(f"chunking {wrong.pointer.rpartition('/')[2]} {wrong.detail}", errors=[wrong])


def _wrong_size(options: ChunkingOptions, window_tokens: int) -> FieldError | None:
    if options.size < 1:
        return _wrong("size", "too_small", f"is {options.size} and must be at least 1")
    if options.unit == "tokens" and options.size > window_tokens:
        return _wrong("size", "too_large", f"is {options.size}, above the {window_tokens} tokens that the model reads")
    if options.overlap < 0:
        return _wrong("overlap", "too_small", f"is {options.overlap} and must be at least 0")
    if options.overlap >= options.size:
        return _wrong("overlap", "too_large", f"is {options.overlap} and must be below the size, {options.size}")
    return None


def _wrong(name: str, code: str, detail: str) -> FieldError:
    return FieldError(f"/chunking/{name}", code, detail)
