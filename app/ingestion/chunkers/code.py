"""Cut source code between functions, classes and statements, by its tree-sitter grammar."""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from semantic_text_splitter import CodeSplitter

from app.domain import Chunk, ChunkingOptions, Extraction
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, overlapping, to_chunks, trim
from app.ingestion.chunkers.recursive import cut, is_tiny
from app.ingestion.chunkers.sections import path_of, sections
from app.ingestion.port import CountTokens

GRAMMARS: Mapping[str, tuple[str, str]] = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "c_sharp": ("tree_sitter_c_sharp", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}
"""The module and the function that give each language's grammar."""

# The splitter's time grows faster than the text: longer code was made by a machine, and is cut between lines.
_LONGEST = 500_000


def chunk_code(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield the chunks of code in `options.language`, or the language that the loader found.

    Code of no known language, and very long code, is cut at blank lines and line ends.
    """
    limits = chunk_limits(options, count_tokens, window_tokens)
    text = extraction.text
    language = options.language or str(extraction.details.get("language"))
    narrow = limits.without_overlap()
    if language in GRAMMARS and len(text) <= _LONGEST:
        pieces = _by_grammar(text, language, narrow)
    else:
        pieces = cut(text, 0, len(text), narrow)
    found = list(sections(text, extraction.headings))
    return to_chunks(
        extraction,
        ((piece, path_of(found, piece.start, piece.end)) for piece in overlapping(text, pieces, limits)),
    )


def _by_grammar(text: str, language: str, limits: ChunkLimits) -> Iterator[Piece]:
    start, end = trim(text, 0, len(text))
    if start == end or limits.measure(text[start:end]) is not None:
        yield from cut(text, start, end, limits)
        return
    capacity = limits.capacity(text)
    splitter = CodeSplitter(_grammar(language), capacity)
    found = (trim(text, place, place + len(code)) for place, code in splitter.chunk_indices(text))
    for first, last in _headed((span for span in found if span[0] < span[1]), capacity):
        yield from cut(text, first, last, limits)


def _headed(spans: Iterable[tuple[int, int]], capacity: int) -> Iterator[tuple[int, int]]:
    """Join a tiny span, such as the first line of a class, with the one after it, however long both are."""
    held: int | None = None
    for start, end in spans:
        start = start if held is None else held
        held = start if is_tiny(end - start, capacity) else None
        if held is None:
            yield start, end
    if held is not None:
        yield held, end


@lru_cache(maxsize=len(GRAMMARS))
def _grammar(language: str) -> object:
    module, function = GRAMMARS[language]
    grammar: object = getattr(importlib.import_module(module), function)()
    return grammar
