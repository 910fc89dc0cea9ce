"""What a PDF's forms say: values of filled fields, and the text of forms that only XFA describes."""

import ctypes
from collections.abc import Iterator
from typing import Any

import pypdfium2.raw as pdfium_c
from lxml import etree

from app.ingestion.loaders.canonical import on_one_line

_SHOWN = {pdfium_c.FPDF_ANNOT_WIDGET, pdfium_c.FPDF_ANNOT_FREETEXT, pdfium_c.FPDF_ANNOT_STAMP}
_MAX_ANNOTATIONS = 2_000
_MAX_PACKET_BYTES = 50_000_000


def page_with_fields(document: Any, index: int) -> Any:
    """Return a page; where it has form fields or text annotations, they are made part of its content."""
    page = document[index]
    count = min(pdfium_c.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)
    if any(_subtype(page, place) in _SHOWN for place in range(count)):
        pdfium_c.FPDFPage_Flatten(page, pdfium_c.FLAT_NORMALDISPLAY)
        page.close()
        page = document[index]
    return page


def _subtype(page: Any, place: int) -> int:
    annotation = pdfium_c.FPDFPage_GetAnnot(page, place)
    try:
        return int(pdfium_c.FPDFAnnot_GetSubtype(annotation))
    finally:
        pdfium_c.FPDFPage_CloseAnnot(annotation)


def dynamic_form_text(document: Any) -> str:
    """Return labels and values of a form whose pages only XFA makes, else an empty string."""
    if document.get_formtype() != pdfium_c.FORMTYPE_XFA_FULL:
        return ""
    packets = {_packet_name(document, place): place for place in range(pdfium_c.FPDF_GetXFAPacketCount(document))}
    lines: list[str] = []
    for name in ("template", "datasets"):
        if name in packets:
            lines.extend(_texts(_packet(document, packets[name])))
    return "\n".join(dict.fromkeys(lines))


def _packet_name(document: Any, place: int) -> str:
    size = pdfium_c.FPDF_GetXFAPacketName(document, place, None, 0)
    buffer = ctypes.create_string_buffer(size)
    pdfium_c.FPDF_GetXFAPacketName(document, place, buffer, size)
    return buffer.value.decode("utf-8", "replace")


def _packet(document: Any, place: int) -> bytes:
    size = ctypes.c_ulong()
    pdfium_c.FPDF_GetXFAPacketContent(document, place, None, 0, size)
    if size.value > _MAX_PACKET_BYTES:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    pdfium_c.FPDF_GetXFAPacketContent(document, place, buffer, size.value, size)
    return buffer.raw[: size.value]


def _texts(packet: bytes) -> Iterator[str]:
    """Yield the template's captions and the data's `field: value` lines."""
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
    root = etree.fromstring(packet, parser) if packet.strip() else None
    if root is None:
        return
    is_data = etree.QName(root).localname == "datasets"
    for element in root.iter(etree.Element):
        name = etree.QName(element).localname
        if is_data and len(element) == 0 and element.text and element.text.strip():
            yield f"{name}: {on_one_line(element.text)}"
        elif not is_data and name in ("text", "exData"):
            text = on_one_line("".join(element.itertext()))
            if text:
                yield text
