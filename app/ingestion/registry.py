"""Which loader reads a media type."""

from collections.abc import Mapping

from app.ingestion.loaders import (
    code,
    csv,
    docx,
    eml,
    epub,
    html,
    image,
    json,
    jsonl,
    markdown,
    msg,
    odf,
    pdf,
    pptx,
    rtf,
    text,
    xlsx,
    xml,
)
from app.ingestion.port import Loader

LOADERS: Mapping[str, Loader] = {
    media_type: module.load
    for module in (
        text,
        markdown,
        html,
        xml,
        json,
        jsonl,
        csv,
        code,
        image,
        epub,
        eml,
        msg,
        pdf,
        docx,
        pptx,
        xlsx,
        odf,
        rtf,
    )
    for media_type in module.MEDIA_TYPES
}
