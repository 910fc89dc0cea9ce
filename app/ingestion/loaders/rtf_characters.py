"""Which characters the bytes and words of rich text stand for."""

import codecs
from collections.abc import Iterable

SYMBOL = "symbol"
"""The charset of fonts whose letters are pictures."""

_DEFAULT = "cp1252"
_BY_CHARSET = {
    2: SYMBOL,
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gb18030",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
_BY_PAGE = {936: "gb18030", 10000: "mac_roman", 10001: "shift_jis", 10007: "mac_cyrillic", 65001: "utf-8"}

WORDS = {
    "tab": "\t",
    "line": "\n",
    "softline": "\n",
    "emdash": "—",
    "endash": "–",
    "bullet": "•",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "emspace": "\u2003",
    "enspace": "\u2002",
    "qmspace": "\u2005",
    "zwj": "\u200d",
    "zwnj": "\u200c",
    "ltrmark": "\u200e",
    "rtlmark": "\u200f",
    "zwbo": "\u200b",
}
SIGNS = {b"~": "\u00a0", b"-": "\u00ad", b"_": "\u2011", b"\\": "\\", b"{": "{", b"}": "}"}


def by_charset(number: int) -> str | None:
    """Return the encoding of a font's charset; `None` for those that leave it to the document."""
    return _BY_CHARSET.get(number)


def by_page(number: int) -> str | None:
    """Return the encoding of a code page, `None` for one that is not known."""
    name = _BY_PAGE.get(number, f"cp{number}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None


def unicode_character(number: int) -> str:
    """Return the character of a number of 16 bits, which may be signed; letters of symbol fonts are bullets."""
    number %= 0x10000
    return "•" if 0xF000 <= number <= 0xF0FF else chr(number)


def decoded(data: bytes, encodings: Iterable[str | None]) -> tuple[str, int]:
    """Return the text by the first encoding that fits all of it, and how many bytes none could read."""
    for encoding in (*encodings, _DEFAULT):
        if encoding == SYMBOL:
            # Their letters are bullets, arrows and boxes, whatever the letter is.
            return ("•" if data.strip() else " "), 0
        if encoding is not None:
            try:
                return data.decode(encoding), 0
            except UnicodeDecodeError:
                continue
    text = data.decode(_DEFAULT, "ignore")
    return text, len(data) - len(text)
