"""Which loader reads a media type, and which chunker a strategy names."""

from collections.abc import Mapping

from app.ingestion.chunkers.automatic import chunk_automatically
from app.ingestion.chunkers.markdown import chunk_by_headings
from app.ingestion.chunkers.recursive import chunk_recursively
from app.ingestion.loaders import csv, docx, html, json, jsonl, markdown, pdf, text, xml
from app.ingestion.port import Chunker, Loader

LOADERS: Mapping[str, Loader] = {
    media_type: module.load
    for module in (text, markdown, html, xml, json, jsonl, csv, pdf, docx)
    for media_type in module.MEDIA_TYPES
}

CHUNKERS: Mapping[str, Chunker] = {
    "auto": chunk_automatically,
    "recursive": chunk_recursively,
    "markdown": chunk_by_headings,
}
