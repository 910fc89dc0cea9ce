"""Complete chunking options and refuse those that cannot work, before any document is cut."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from app.domain import ChunkingOptions
from app.errors import FieldError, InvalidRequest, UnknownField
from app.ingestion.chunkers.registry import CHUNKERS
from app.ingestion.chunkers.syntax import GRAMMARS

POINTER = "/chunking"
LONGEST_CHILD = 512
"""Code points of a child at most: a longer one blurs what it is found by."""

Wrong: TypeAlias = Iterator[tuple[str, str, str]]
"""What is wrong: a place below the options, a code and a sentence."""


def completed_chunking(given: Mapping[str, Any], pointer: str = POINTER) -> dict[str, Any]:
    """Return what the strategy reads, with its defaults: the form that is stored and hashed.

    Raises `UnknownField` for an unknown strategy, `InvalidRequest` for a field that the strategy does not read.
    """
    strategy = given.get("strategy", ChunkingOptions().strategy)
    if strategy not in CHUNKERS:
        nearest = difflib.get_close_matches(strategy, CHUNKERS, n=1)
        raise UnknownField(
            f"there is no chunking strategy {strategy!r}; there are {', '.join(CHUNKERS)}",
            hint=f"did you mean {nearest[0]}?" if nearest else None,
            errors=[FieldError(f"{pointer}/strategy", "unknown_field", f"must be one of {', '.join(CHUNKERS)}")],
        )
    fields = CHUNKERS[strategy].fields
    if given.get("threshold") is not None and given.get("percentile") is not None:
        detail = "excludes `percentile`: give one of the two"
        raise InvalidRequest(detail, errors=[FieldError(f"{pointer}/threshold", "not_applicable", detail)])
    if given.get("mode") == "document":
        # A parent that is the whole document has no size.
        fields = {name: value for name, value in fields.items() if name != "parent_size"}
    unread = [name for name in given if name != "strategy" and name not in fields]
    if unread:
        read = ", ".join(fields) or "no other field"
        errors = [
            FieldError(f"{pointer}/{name}", "not_applicable", f"is not read by {strategy}, which reads {read}")
            for name in unread
        ]
        raise InvalidRequest(f"chunking {unread[0]} {errors[0].detail}", errors=errors)
    both = {"strategy": strategy, **fields, **given}
    if strategy == "semantic" and both["threshold"] is None and both["percentile"] is None:
        both["percentile"] = ChunkingOptions().percentile
    return {name: value for name, value in both.items() if value is not None}


def check_collection_chunking(chunking: Mapping[str, Any], window_tokens: int) -> None:
    """Raise `InvalidRequest` as `check_chunking` does; the chunks of `custom` are each document's own."""
    if chunking["strategy"] != "custom":
        check_chunking(ChunkingOptions(**chunking), window_tokens)
    elif "chunks" in chunking:
        detail = "belong to one document, not to a collection"
        raise InvalidRequest(f"chunks {detail}", errors=[FieldError(f"{POINTER}/chunks", "not_applicable", detail)])


def check_chunking(options: ChunkingOptions, window_tokens: int, pointer: str = POINTER) -> None:
    """Raise `InvalidRequest` that points at the values which cannot work together for a model with this window."""
    check = _CHECKS.get(options.strategy, _wrong_size)
    errors = [FieldError(f"{pointer}/{place}", code, detail) for place, code, detail in check(options, window_tokens)]
    if errors:
        raise InvalidRequest(
            f"chunking {errors[0].pointer.removeprefix(pointer)[1:]} {errors[0].detail}", errors=errors
        )


def _wrong_size(options: ChunkingOptions, window_tokens: int) -> Wrong:
    in_tokens = options.unit == "tokens" or options.strategy == "tokens"
    if options.size < 1:
        yield "size", "too_small", f"is {options.size} and must be at least 1"
    elif in_tokens and options.size > window_tokens:
        yield "size", "too_large", f"is {options.size}, above the {window_tokens} tokens that the model reads"
    elif options.overlap < 0:
        yield "overlap", "too_small", f"is {options.overlap} and must be at least 0"
    elif options.overlap >= options.size:
        yield "overlap", "too_large", f"is {options.overlap} and must be below the size, {options.size}"


def _wrong_parents(options: ChunkingOptions, window_tokens: int) -> Wrong:
    yield from _wrong_size(options, window_tokens)
    if options.size > LONGEST_CHILD:
        yield "size", "too_large", f"is {options.size}; a child has at most {LONGEST_CHILD} characters"
    if options.parent_size < options.size:
        yield "parent_size", "too_small", f"is {options.parent_size} and must be at least the size, {options.size}"


def _wrong_code(options: ChunkingOptions, window_tokens: int) -> Wrong:
    yield from _wrong_size(options, window_tokens)
    if options.language is not None and options.language not in GRAMMARS:
        yield "language", "unknown_field", f"is {options.language!r}; must be one of {', '.join(GRAMMARS)}"


def _wrong_records(options: ChunkingOptions, _window_tokens: int) -> Wrong:
    if options.records < 1:
        yield "records", "too_small", f"is {options.records} and must be at least 1"


def _wrong_chunks(options: ChunkingOptions, _window_tokens: int) -> Wrong:
    if not options.chunks:
        yield "chunks", "missing", "must hold at least one chunk, for each document"
    covered = 0
    for place, chunk in enumerate(options.chunks):
        yield from ((f"chunks/{place}{member}", code, detail) for member, code, detail in _wrong_chunk(chunk, covered))
        covered = max(covered, chunk.get("end") or 0)


def _wrong_chunk(chunk: Mapping[str, Any], covered: int) -> Wrong:
    given = {name for name in ("start", "end", "text") if chunk.get(name) is not None}
    if given == {"text"}:
        if not chunk["text"].strip("\0 \t\r\n") or chunk["text"].isspace():
            yield "/text", "empty", "holds no text, only white space"
    elif given != {"start", "end"}:
        yield "", "invalid_chunk", "must be either `start` and `end` or `text`"
    elif chunk["end"] <= chunk["start"]:
        yield "/end", "empty", f"is {chunk['end']} and must be above the start, {chunk['start']}"
    elif chunk["start"] < covered:
        yield "/start", "overlapping", f"is {chunk['start']}, inside the chunk before, which ends at {covered}"


_CHECKS: Mapping[str, Callable[[ChunkingOptions, int], Wrong]] = {
    "parent_child": _wrong_parents,
    "code": _wrong_code,
    "records": _wrong_records,
    "none": lambda _options, _window: iter(()),
    "custom": _wrong_chunks,
}
