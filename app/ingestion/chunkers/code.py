"""Cut source code between functions, classes and statements, by its tree-sitter grammar."""

from collections.abc import Iterable, Iterator

from app.domain import Chunk, ChunkingOptions, Extraction, Notice
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, overlapping, to_chunks, trim
from app.ingestion.chunkers.recursive import cut, is_tiny
from app.ingestion.chunkers.sections import path_of, sections
from app.ingestion.chunkers.syntax import GRAMMARS, syntactic_spans
from app.ingestion.port import CountTokens

# The splitter's time grows faster than the text: longer code was made by a machine, and is cut between lines.
_LONGEST = 500_000


def chunk_code(
    extraction: Extraction, options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int
) -> Iterator[Chunk]:
    """Yield the chunks of code in `options.language`, or the language that the loader found.

    Code of no known language, very long code, and, with a warning, code that is nested too deeply is cut at blank
    lines and line ends.
    """
    limits = chunk_limits(options, count_tokens, window_tokens)
    text = extraction.text
    language = options.language or str(extraction.details.get("language"))
    narrow = limits.without_overlap()
    if language in GRAMMARS and len(text) <= _LONGEST:
        pieces = _by_grammar(extraction, language, narrow)
    else:
        pieces = cut(text, 0, len(text), narrow)
    found = list(sections(text, extraction.headings))
    return to_chunks(
        extraction,
        ((piece, path_of(found, piece.start, piece.end)) for piece in overlapping(text, pieces, limits)),
    )


def _by_grammar(extraction: Extraction, language: str, limits: ChunkLimits) -> Iterator[Piece]:
    text = extraction.text
    start, end = trim(text, 0, len(text))
    if start == end or limits.measure(text[start:end]) is not None:
        yield from cut(text, start, end, limits)
        return
    capacity = limits.capacity(text)
    spans = syntactic_spans(text, language, capacity)
    if spans is None:
        _tell_of_depth(extraction, language)
        yield from cut(text, start, end, limits)
        return
    found = (trim(text, first, last) for first, last in spans)
    for first, last in _headed((span for span in found if span[0] < span[1]), capacity):
        yield from cut(text, first, last, limits)


def _tell_of_depth(extraction: Extraction, language: str) -> None:
    if extraction.tell is not None:
        detail = f"the {language} code is nested too deeply to be cut between statements, and was cut between lines"
        extraction.tell(Notice("code_cut_between_lines", detail, {"language": language}))


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
