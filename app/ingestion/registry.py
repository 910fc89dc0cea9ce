"""Which loader reads a media type."""

from collections.abc import Mapping

from app.ingestion.loaders import csv, docx, html, json, jsonl, markdown, pdf, pptx, text, xlsx, xml
from app.ingestion.port import Loader

LOADERS: Mapping[str, Loader] = {
    media_type: module.load
    for module in (text, markdown, html, xml, json, jsonl, csv, pdf, docx, pptx, xlsx)
    for media_type in module.MEDIA_TYPES
}
