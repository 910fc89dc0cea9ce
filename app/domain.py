"""The shared nouns, frozen. Offsets are code points of a document's canonical text, `[start, end)` throughout."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeAlias

Metadata: TypeAlias = Mapping[str, Any]
"""A JSON object: strings, numbers, booleans, dates as RFC 3339 strings, and lists of them."""


class DocumentState(StrEnum):
    """Where a document stands; an older version answers while a newer one is in work."""

    PENDING = "pending"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the caller should know although the work was done."""

    code: str
    detail: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return `{code, detail, ...extra}`."""
        return {"code": self.code, "detail": self.detail, **self.extra}


@dataclass(frozen=True, slots=True)
class Document:
    """A document as the store knows it; `version` is 0 until one version was ready."""

    key: int
    id: str
    state: DocumentState
    version: int
    etag: str | None
    title: str
    metadata: Metadata
    source_type: str
    media_type: str
    filename: str | None
    content_hash: str | None
    characters: int
    chunk_count: int
    extraction: Mapping[str, Any] | None
    warnings: tuple[Mapping[str, Any], ...]
    error: Mapping[str, Any] | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    indexed_at: datetime | None = None
    chunking: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """One page's place in the canonical text; `number` counts from 1."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading's place in the canonical text and its level, 1 to 6."""

    level: int
    title: str
    start: int


ChunkKind: TypeAlias = Literal["child", "parent"]
"""A child is what searches find; a parent is what a child is read in."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one document: `text == document_text[start:end]`.

    `context` is put before the text for embedding and keywords only; what is returned is `text`. A document's parents
    have the ordinals after those of its children; `parent` is the ordinal of the one that a child is read in.
    """

    ordinal: int
    start: int
    end: int
    text: str
    token_count: int
    context: str = ""
    heading_path: tuple[str, ...] = ()
    page_start: int | None = None
    page_end: int | None = None
    kind: ChunkKind = "child"
    parent: int | None = None
    written_context: str | None = None
    """What a language model wrote of the chunk; `context` begins with as much of it as the embedder's window holds."""

    @property
    def indexed_text(self) -> str:
        """Return what is embedded and indexed: the context, a line end, the text."""
        return indexed_text(self.context, self.text)

    @property
    def text_hash(self) -> bytes:
        """Return the SHA-256 of what is embedded, by which its vector is found again."""
        return text_hash(self.indexed_text)


def indexed_text(context: str, text: str) -> str:
    """Return what is embedded and indexed of a chunk."""
    return f"{context}\n{text}" if context else text


def text_hash(indexed: str) -> bytes:
    """Return the SHA-256 by which the vector of an indexed text is found again."""
    return hashlib.sha256(indexed.encode()).digest()


@dataclass(frozen=True, slots=True)
class LegScore:
    """What one leg said of a hit: its score and its rank, from 1."""

    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class PassageContext:
    """What stands around a passage: `text` is `[start, end)` of its document.

    Where a passage before has it already, `same_as` is the rank of that one and `text` is `None`. `truncated` tells
    that more was asked for than is given.
    """

    start: int
    end: int
    text: str | None
    same_as: int | None = None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A further hit of a document that is given once."""

    chunk_id: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a document's text, `[start, end)` in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that a search found, with the scores that put it there.

    One that took in neighbours names them in `merged`; its text is theirs too, as it stands in the document. One whose
    text is that of its context too tells in `hit` where what was found stands.
    """

    rank: int
    chunk_id: str
    document_id: str
    collection: str
    title: str
    text: str
    start: int
    end: int
    page_start: int | None
    page_end: int | None
    heading_path: tuple[str, ...]
    score: float
    score_type: str
    legs: Mapping[str, LegScore]
    fused: float | None
    metadata: Metadata
    rerank: float | None = None
    context: PassageContext | None = None
    highlights: tuple[Span, ...] | None = None
    merged: tuple[str, ...] = ()
    group: tuple[GroupMember, ...] | None = None
    hit: Span | None = None

    @property
    def found_by(self) -> tuple[str, ...]:
        """Return the names of the legs that found it."""
        return tuple(self.legs)


@dataclass(frozen=True, slots=True)
class Citation:
    """A place in an answer and the exact piece of a source that supports it: `quote == text[start:end]`."""

    marker: int
    answer_start: int
    answer_end: int
    quote: str
    document_id: str
    chunk_id: str
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    verified: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What `ask` says; `sources[i]` is the source of marker `i + 1`."""

    text: str
    answered: bool
    reason: str | None
    citations: tuple[Citation, ...]
    invalid_citations: int
    sources: tuple[Passage, ...]
    standalone_question: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    warnings: tuple[Notice, ...]
    timings_ms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came inside another one and becomes a document of its own; `media_type` is what it is said to be."""

    name: str
    media_type: str | None
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a loader made of a file; the text is canonical (NFC, `\\n`, no NUL, no lone surrogate)."""

    text: str
    parser: str
    media_type: str
    source_type: str
    encoding: str | None = None
    title: str | None = None
    metadata: Metadata = field(default_factory=dict)
    pages: tuple[Page, ...] = ()
    headings: tuple[Heading, ...] = ()
    coverage: float = 1.0
    warnings: tuple[Notice, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[int, ...] = ()
    """Where each record of a table or a list begins, for chunks of whole records."""
    record_numbers: tuple[int, ...] = ()
    """The row of its sheet that each of `records` is, or nothing."""
    attachments: tuple[Attachment, ...] = ()
    boundaries: tuple[int, ...] = ()
    """Where the version before was cut and the text has not changed since; see `ingestion/alignment.py`."""
    tell: Callable[[Notice], None] | None = field(default=None, repr=False, compare=False)
    """Who hears what a chunker has to say of the document, while it is cut."""

    def report(self) -> dict[str, Any]:
        """Return the extraction report that is stored and answered."""
        return {
            "parser": self.parser,
            "media_type": self.media_type,
            "encoding": self.encoding,
            "pages": len(self.pages) or None,
            "characters": len(self.text),
            "coverage": self.coverage,
            **self.details,
        }


Contextualizer: TypeAlias = Literal["heading", "llm", "none"]


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """How a text is cut. `size` and `overlap` count code points or tokens of the collection's model.

    Each strategy reads those of the fields that `ingestion/chunkers/registry.py` names for it: `records` in a chunk;
    what a parent is (`mode`) and its most code points; the similarity of neighbouring sentences below which `semantic`
    cuts, or the `percentile` of the differences above which it does; the `language` of code; a caller's own `chunks`.
    """

    strategy: str = "auto"
    size: int = 1200
    overlap: int = 0
    unit: Literal["characters", "tokens"] = "characters"
    records: int = 1
    mode: Literal["paragraph", "heading", "fixed", "document"] = "paragraph"
    parent_size: int = 2000
    percentile: float = 90.0
    threshold: float | None = None
    language: str | None = None
    chunks: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class NormalisationOptions:
    """What of a text only its pages made, and is taken out; `auto` does what suits the kind of file."""

    repeated_lines: Literal["auto", "remove", "keep"] = "auto"
    hyphens: Literal["auto", "join", "keep"] = "auto"
    line_breaks: Literal["auto", "join", "keep"] = "auto"


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """Who says where a chunk stands: title and headings, a language model beside them, or nobody.

    `written_tokens` is what the model may write of a chunk.
    """

    contextualizer: Contextualizer = "heading"
    written_tokens: int = 0


def pages_of(pages: Sequence[Page], start: int, end: int) -> tuple[int | None, int | None]:
    """Return the first and last page number that `[start, end)` touches, or `(None, None)` where it touches none.

    Pages are in the order of the text and disjoint.
    """
    first = bisect_right(pages, start, key=lambda page: page.end)
    last = bisect_left(pages, end, key=lambda page: page.start) - 1
    return (pages[first].number, pages[last].number) if first <= last else (None, None)
