"""Which chunker a strategy names; apart from the loaders, so that a server which checks a name loads no parser."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.ingestion.chunkers.automatic import chunk_automatically
from app.ingestion.chunkers.code import chunk_code
from app.ingestion.chunkers.custom import take_chunks
from app.ingestion.chunkers.markdown import chunk_by_headings, chunk_by_html_headings
from app.ingestion.chunkers.parent_child import chunk_parents_and_children
from app.ingestion.chunkers.records import chunk_by_records
from app.ingestion.chunkers.recursive import chunk_recursively
from app.ingestion.chunkers.sentences import chunk_by_sentences
from app.ingestion.chunkers.whole import leave_whole
from app.ingestion.chunkers.windows import chunk_by_tokens, chunk_by_windows
from app.ingestion.port import Chunker

_SIZED: Mapping[str, Any] = {"size": 1200, "overlap": 0, "unit": "characters"}


@dataclass(frozen=True, slots=True)
class Strategy:
    """A chunker and the fields of `ChunkingOptions` that it reads, with their defaults; `None` is left out.

    One that `keeps_pieces` is given the model's whole window, beside which a context gets what is left.
    """

    chunk: Chunker
    fields: Mapping[str, Any]
    keeps_pieces: bool = False


CHUNKERS: Mapping[str, Strategy] = {
    "auto": Strategy(chunk_automatically, _SIZED),
    "recursive": Strategy(chunk_recursively, _SIZED),
    "markdown": Strategy(chunk_by_headings, _SIZED),
    "html": Strategy(chunk_by_html_headings, _SIZED),
    "fixed": Strategy(chunk_by_windows, _SIZED),
    "tokens": Strategy(chunk_by_tokens, {"size": 256, "overlap": 0}),
    "records": Strategy(chunk_by_records, {"records": 1}),
    "semantic": Strategy(
        chunk_by_sentences, {"size": 1200, "unit": "characters", "percentile": None, "threshold": None}
    ),
    "parent_child": Strategy(
        chunk_parents_and_children, {"size": 400, "overlap": 0, "mode": "paragraph", "parent_size": 2000}
    ),
    "code": Strategy(chunk_code, {**_SIZED, "language": None}),
    "none": Strategy(leave_whole, {}, keeps_pieces=True),
    "custom": Strategy(take_chunks, {"chunks": None}, keeps_pieces=True),
}
