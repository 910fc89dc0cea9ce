"""Give PDFium a stand-in for East Asian fonts that a file names but does not carry.

PDFium knows the letters of such fonts without having them, but drops text whose glyphs have no extent: all of it where
lines run downwards. One box for every letter gives the text an extent, on machines without East Asian fonts too.
"""

import ctypes
import struct
from functools import lru_cache
from typing import Any

import pypdfium2 as pdfium

_EAST_ASIAN_CHARSETS = {128, 129, 130, 134, 136}
"""The Windows charsets of Japanese, Korean, Johab, simplified and traditional Chinese."""
_HANDLE = 0xF007
_WHOLE_FONT = 0


class _StandIn(pdfium.PdfSysfontBase):  # type: ignore[misc]
    """Answers for East Asian fonts and leaves all others to PDFium's own look-up."""

    def __init__(self) -> None:
        self._font = _box_font()
        super().__init__()

    def MapFont(  # noqa: N802
        self, _: Any, weight: int, italic: int, charset: int, pitch: int, face: Any, ignored: Any
    ) -> Any:
        if charset in _EAST_ASIAN_CHARSETS:
            return _HANDLE
        return self.default.MapFont(self.default, weight, italic, charset, pitch, face, ignored)

    def GetFontData(self, _: Any, font: Any, table: int, buffer: Any, size: int) -> Any:  # noqa: N802
        if font != _HANDLE:
            return self.default.GetFontData(self.default, font, table, buffer, size)
        if table != _WHOLE_FONT:
            return 0
        if buffer and size >= len(self._font):
            ctypes.memmove(buffer, self._font, len(self._font))
        return len(self._font)

    def GetFaceName(self, _: Any, font: Any, buffer: Any, size: int) -> Any:  # noqa: N802
        return 0 if font == _HANDLE else self.default.GetFaceName(self.default, font, buffer, size)

    def GetFontCharset(self, _: Any, font: Any) -> Any:  # noqa: N802
        return 128 if font == _HANDLE else self.default.GetFontCharset(self.default, font)

    def DeleteFont(self, _: Any, font: Any) -> None:  # noqa: N802
        if font != _HANDLE:
            self.default.DeleteFont(self.default, font)


@lru_cache(maxsize=1)
def install_stand_in() -> None:
    """Make this process's PDFium use the stand-in, once."""
    _StandIn().setup()


def _box_font() -> bytes:
    """Return a TrueType font that maps every letter to one box, 1000 units wide."""
    left, bottom, right, top = 0, -120, 1000, 880
    glyph = struct.pack(">5h", 1, left, bottom, right, top)
    glyph += struct.pack(">2H4B", 3, 0, 1, 1, 1, 1)
    glyph += struct.pack(">4h", left, 0, right - left, 0) + struct.pack(">4h", bottom, top - bottom, 0, bottom - top)
    glyph += bytes(-len(glyph) % 4)
    every_letter = struct.pack(">2H3I3I", 13, 0, 28, 0, 1, 1, 0x10FFFF, 1)
    tables = {
        b"cmap": struct.pack(">4HI", 0, 1, 3, 10, 12) + every_letter,
        b"glyf": glyph * 2,
        b"head": struct.pack(
            ">4I2H2Q4h2H3h",
            *(0x10000, 0x10000, 0, 0x5F0F3CF5, 0, 1000, 0, 0, left, bottom, right, top, 0, 8, 2, 0, 0),
        ),
        b"hhea": struct.pack(">I3hH11hH", 0x10000, top, bottom, 0, 1000, 0, 0, 1000, 1, *(0,) * 7, 2),
        b"hmtx": struct.pack(">HhHh", 1000, 0, 1000, 0),
        b"loca": struct.pack(">3H", 0, len(glyph) // 2, len(glyph)),
        b"maxp": struct.pack(">I14H", 0x10000, 2, 4, 1, 0, 0, 1, *(0,) * 8),
    }
    directory = struct.pack(">I4H", 0x10000, len(tables), 64, 2, len(tables) * 16 - 64)
    body = b""
    for name, table in tables.items():
        place = 12 + 16 * len(tables) + len(body)
        body += table + bytes(-len(table) % 4)
        directory += name + struct.pack(">3I", 0, place, len(table))
    return directory + body
