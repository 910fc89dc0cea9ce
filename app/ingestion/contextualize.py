"""Say of each chunk where it stands: title and headings go before its text for embedding and keywords."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from app.domain import Chunk, ContextOptions, Extraction
from app.ingestion.chunkers.sections import sections
from app.ingestion.port import CountTokens

SEPARATOR = " › "

_LONGEST_CONTEXT = 200
_LONGEST_TITLE = 120

# A context may push a chunk's own text out of at most this part of the window.
_WINDOW_SHARE = 4

# Tokens are added up, which is exact where no token reaches over a line end; near the window they are counted.
_UNCERTAIN_TOKENS = 8


HEADINGS = ContextOptions()

# What a model writes may take this part of the window together with the headings.
_WRITTEN_SHARE = 2


def reserved_tokens(
    extraction: Extraction,
    title: str,
    count_tokens: CountTokens,
    window_tokens: int,
    contexts: ContextOptions = HEADINGS,
) -> int:
    """Return how many tokens of the window the chunkers should leave to contexts."""
    if contexts.contextualizer == "none":
        return 0
    named = _reserved_for_names(extraction, title, count_tokens, window_tokens)
    return min(named + contexts.written_tokens, window_tokens // _WRITTEN_SHARE)


def _reserved_for_names(extraction: Extraction, title: str, count_tokens: CountTokens, window_tokens: int) -> int:
    paths = {section.heading_path for section in sections(extraction.text, extraction.headings)}
    longest = max((_joined(_parts(title, path)) for path in paths | {()}), key=len)
    return min(count_tokens(longest + "\n") - count_tokens(""), window_tokens // _WINDOW_SHARE) if longest else 0


def contextualize(
    title: str,
    chunks: Iterable[Chunk],
    count_tokens: CountTokens,
    window_tokens: int,
    contexts: ContextOptions = HEADINGS,
) -> Iterator[Chunk]:
    """Yield the chunks with their context: as much of title and headings as leaves `indexed_text` in the window.

    What the chunk begins with anyhow is not said twice. The contextualizer `none` leaves the context that a chunk
    already needs from elsewhere.
    """
    is_named = contexts.contextualizer != "none"
    control_tokens = count_tokens("")

    @lru_cache(maxsize=256)
    def tokens_of(context: str) -> int:
        return count_tokens(context + "\n") - control_tokens

    def fits(chunk: Chunk) -> bool:
        total = control_tokens + tokens_of(chunk.context) + chunk.token_count
        if total <= window_tokens - _UNCERTAIN_TOKENS:
            return True
        return count_tokens(chunk.indexed_text) <= window_tokens

    for chunk in chunks:
        offered = (
            replace(chunk, context=context) for context in (_contexts(title, chunk) if is_named else [chunk.context])
        )
        yield next(filter(fits, offered), replace(chunk, context=""))


def _contexts(title: str, chunk: Chunk) -> Iterator[str]:
    """Yield contexts from the fullest to the shortest, each with what the chunk already needs from elsewhere."""
    parts = _without_opening(_parts(title, chunk.heading_path), chunk.text)
    yield from dict.fromkeys(
        "\n".join(filter(None, (_joined(chosen), chunk.context)))
        for chosen in (parts, [*parts[:1], *parts[1:][-1:]], parts[-1:], [])
    )


def _parts(title: str, heading_path: Sequence[str]) -> list[str]:
    """Return title and headings, each once in a row."""
    parts: list[str] = []
    for part in (title, *heading_path):
        part = " ".join(part.split())
        if part and (not parts or _letters(part) != _letters(parts[-1])):
            parts.append(part if len(part) <= _LONGEST_TITLE else part[: _LONGEST_TITLE - 1].rstrip() + "…")
    return parts


def _joined(parts: Sequence[str]) -> str:
    """Return the parts as one line; outer headings go first when it gets long, the title and the nearest stay."""
    kept = list(parts)
    while len(kept) > 2 and len(SEPARATOR.join(kept)) > _LONGEST_CONTEXT:
        del kept[1]
    return SEPARATOR.join(kept)


def _without_opening(parts: list[str], text: str) -> list[str]:
    """Return the parts without those at their end that the text itself begins with."""
    opening = _letters(text[: 4 * _LONGEST_CONTEXT])
    for first in range(len(parts)):
        said = _letters("".join(parts[first:])).rstrip("…")
        if said and opening.startswith(said):
            return parts[:first]
    return parts


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()
