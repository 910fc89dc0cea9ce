"""Decode a file's bytes by the charset that fits all of them: marks, then UTF-8, then what it declares, then letters.

A guess is a likelihood: each candidate charset decodes a sample, and the cost of its letters in the language that it
is used for (negative log probability, in nats) is summed. The cheapest one that decodes the whole file wins.
"""

import codecs
import math
import re
import string
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from charset_normalizer import from_bytes

from app.errors import UndecodableText
from app.ingestion.loaders.letter_frequencies import LETTERS

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CANDIDATES = (
    ("gb18030", "chinese_simplified", 0.0),
    ("gb18030", "chinese_traditional", 2.0),
    ("big5", "chinese_traditional", 0.5),
    ("cp932", "japanese", 0.0),
    ("euc_jp", "japanese", 1.5),
    ("cp949", "korean", 1.0),
    ("utf-16-le", "chinese_simplified", 8.0),
    ("utf-16-be", "chinese_simplified", 8.0),
    ("utf-16-le", "chinese_traditional", 8.0),
    ("utf-16-be", "chinese_traditional", 8.0),
    ("utf-16-le", "japanese", 8.0),
    ("utf-16-be", "japanese", 8.0),
    ("utf-16-le", "korean", 8.0),
    ("utf-16-be", "korean", 8.0),
    ("cp1252", "western", 0.0),
    ("cp1251", "cyrillic", 0.0),
    ("koi8_u", "cyrillic", 1.0),
    ("iso8859_5", "cyrillic", 3.0),
    ("cp866", "cyrillic", 3.0),
    ("cp1250", "central", 1.0),
    ("iso8859_2", "central", 2.0),
    ("cp1253", "greek", 2.0),
    ("iso8859_7", "greek", 3.0),
    ("cp1254", "turkish", 2.0),
    ("cp1255", "hebrew", 2.0),
    ("iso8859_8", "hebrew", 3.0),
    ("cp1256", "arabic", 2.0),
    ("iso8859_6", "arabic", 3.0),
    ("cp1257", "baltic", 3.0),
    ("cp874", "thai", 2.0),
    ("mac_roman", "western", 6.0),
)
"""Charset, the language whose letters it is judged by, and how rare it is, in nats."""
_WIDER = {
    "ascii": ("cp1252",),
    "big5": ("cp950", "big5hkscs"),
    "euc_jp": ("euc_jp", "euc_jis_2004"),
    "euc_kr": ("cp949",),
    "gb2312": ("gb18030",),
    "gbk": ("gb18030",),
    "hz": ("hz",),
    "iso8859-1": ("cp1252", "iso8859-1"),
    "iso8859_8": ("iso8859_8", "cp1255"),
    "shift_jis": ("cp932", "shift_jis_2004"),
}
"""What to decode with where a charset is named or guessed: files use its larger relatives under its name."""
_LATIN = {"western": 3.0, "central": 3.7, "turkish": 3.7, "baltic": 3.7}
"""What a letter beyond ASCII costs more where most letters are ASCII."""
_IDEOGRAPHIC = {
    "chinese_simplified": ("gb2312", 0xB0, 0xD7),
    "chinese_traditional": ("big5", 0xA4, 0xC6),
    "japanese": ("euc_jp", 0xB0, 0xCF),
    "korean": ("euc_kr", 0xB0, 0xC8),
}
"""The lead bytes under which each national standard keeps its everyday characters."""
_ORDINARY = frozenset(string.printable)
_COST_OF_ASCII = 3.7
_COST_OF_CAPITAL = 0.7
_COST_OF_STRAY = 4.0
_SAMPLE_BYTES = 32_768
_UNLIKELY_COST = 11.5
_MARGIN = 1.0
_CHAOS = 0.1
_DECLARATION = re.compile(
    rb"""<[?]xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]+?charset\s*=\s*["']?\s*([\w.:-]+)""", re.I
)
_SCRIPT_CHANGE = re.compile(r"[A-Za-z](?=[^\W\x00-\x7f])|[^\W\x00-\x7f](?=[A-Za-z])")
_LONE_LETTER = re.compile(r"(?<![^\W\x00-\x7f])[^\W\x00-\x7f](?![^\W\x00-\x7f])")
_DECLARATION_BYTES = 16_384
_HINT = "save the file as UTF-8, or name its charset in the Content-Type"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text, its byte order mark removed, and the charset that decoded every byte of it."""

    text: str
    encoding: str


def decode(data: bytes, named: str | None = None) -> Decoded:
    """Return the text of `data`; `named` is the charset that its transport or markup names.

    Raises `UndecodableText` where no charset decodes all of the bytes into likely text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _marked(data[len(mark) :], encoding)
    decoded = _wide_without_mark(data) or _utf8(data) or _escaped(data) or (_named(data, named) if named else None)
    return decoded or _likeliest(data)


def declared_in_markup(data: bytes) -> str | None:
    """Return the charset that an XML declaration or an HTML `meta` element names in the first 16 KB."""
    found = _DECLARATION.search(data, 0, _DECLARATION_BYTES)
    return next(group for group in found.groups() if group).decode("ascii") if found else None


def charset_parameter(content_type: str | None) -> str | None:
    """Return the charset that a Content-Type names."""
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", content_type or "", re.I)
    return found.group(1) if found else None


def _marked(data: bytes, encoding: str) -> Decoded:
    text = _strict(data, encoding)
    if text is None:
        raise UndecodableText(f"the byte order mark says {encoding}, but not all bytes are {encoding}", hint=_HINT)
    return Decoded(text, encoding)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _utf8(data: bytes) -> Decoded | None:
    text = _strict(data, "utf-8")
    if text is None and b"\xed" in data:
        # A JSON string may hold a lone surrogate; UTF-8 has no other use for these bytes.
        try:
            text = data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None
    if text is None or (b"\x1b$" in data and data.isascii()):
        return None
    return Decoded(text, "utf-8")


def _wide_without_mark(data: bytes) -> Decoded | None:
    """Recognise UTF-32 and UTF-16 by the zero bytes that ASCII letters have in them."""
    sample = data[:_SAMPLE_BYTES]
    zeros = [sample[place::4].count(0) for place in range(4)]
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    if even + odd < len(sample) * 0.2:
        return None
    order = "le" if odd > even else "be"
    for encoding in (f"utf-32-{order}", f"utf-16-{order}"):
        text = _strict(data, encoding)
        if text is not None and text.count("\0") <= len(text) * 0.01:
            return Decoded(text, encoding)
    return None


def _escaped(data: bytes) -> Decoded | None:
    """Read the seven-bit East Asian charsets, which switch by escape sequences."""
    if b"\x1b$" not in data or not data.isascii():
        return None
    for encoding in ("iso2022_jp", "iso2022_jp_2", "iso2022_jp_ext", "iso2022_kr"):
        text = _strict(data, encoding)
        if text is not None:
            return Decoded(text, encoding.replace("_", "-"))
    return Decoded(data.decode("ascii"), "ascii")


def _named(data: bytes, name: str) -> Decoded | None:
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        return None
    for encoding in _WIDER.get(codec, (codec,)):
        text = _strict(data, encoding)
        if text is not None:
            return Decoded(text, codec)
    return None


def _likeliest(data: bytes) -> Decoded:
    sample = _sample(data)
    if _is_mostly_utf8(sample):
        raise UndecodableText(_where_it_breaks(data, "utf-8"), hint=_HINT)
    guesses = sorted((_judge(sample, *candidate) for candidate in _CANDIDATES), key=lambda guess: guess.cost)
    for guess in guesses:
        if guess.cost > guesses[0].cost + _MARGIN * guesses[0].letters or guess.cost_of_letter > _UNLIKELY_COST:
            break
        decoded = _named(data, guess.encoding)
        if decoded:
            return decoded
    if guesses[0].cost_of_letter > _UNLIKELY_COST:
        other = from_bytes(sample).best()
        decoded = _named(data, other.encoding) if other and other.chaos < _CHAOS else None
        if decoded:
            return decoded
    raise UndecodableText(_where_it_breaks(data, guesses[0].encoding), hint=_HINT)


def _is_mostly_utf8(sample: bytes) -> bool:
    above_ascii = sum(byte > 0x7F for byte in sample)
    kept = sum(byte > 0x7F for byte in sample.decode("utf-8", "ignore").encode())
    return kept >= 8 and kept >= 0.9 * above_ascii


def _where_it_breaks(data: bytes, encoding: str) -> str:
    try:
        data.decode(_WIDER.get(encoding, (encoding,))[0])
    except UnicodeDecodeError as error:
        return f"no charset fits all bytes of the text; most of it looks like {encoding}, but not byte {error.start}"
    return "the bytes are not text in any known charset"


def _sample(data: bytes) -> bytes:
    """Return bytes from shortly before the first one above ASCII, where any charset is in step."""
    first = re.search(rb"[\x80-\xff]", data)
    start = max(0, first.start() - 64) if first else 0
    return data[start - start % 2 : start + _SAMPLE_BYTES]


@dataclass(frozen=True, slots=True)
class _Guess:
    encoding: str
    cost: float
    letters: int
    cost_of_letter: float


def _judge(sample: bytes, encoding: str, language: str, rarity: float) -> _Guess:
    """Sum what the sample's letters cost, in nats, when it is decoded by one candidate."""
    text = sample.decode(_WIDER.get(encoding, (encoding,))[-1], "replace")
    counts = Counter(text)
    ordinary = sum(count for letter, count in counts.items() if letter in _ORDINARY)
    letters = len(text) - ordinary
    cost_of_letters = sum(n * _cost(letter, language) for letter, n in counts.items() if letter not in _ORDINARY)
    cost_of_rest = ordinary * _COST_OF_ASCII
    if language in _IDEOGRAPHIC:
        cost_of_rest += len(_SCRIPT_CHANGE.findall(text))
    elif language not in _LATIN:
        # An alphabet's letters stand in words of their own, hardly ever alone or inside a Latin word.
        cost_of_rest += _COST_OF_STRAY * (len(_SCRIPT_CHANGE.findall(text)) + len(_LONE_LETTER.findall(text)))
    return _Guess(encoding, rarity + cost_of_letters + cost_of_rest, letters, cost_of_letters / max(letters, 1))


@lru_cache(maxsize=65_536)
def _cost(letter: str, language: str) -> float:
    """Return the negative log probability of a letter beyond ASCII in texts of a language.

    Ideographs and syllables follow Zipf's law by rank, letters of an alphabet fall off exponentially.
    """
    rank = _ranks(language).get(letter.lower())
    if rank is not None and language in _IDEOGRAPHIC:
        return math.log((rank + 12) * math.log((len(_ranks(language)) + 12) / 12)) + 0.1
    if rank is not None:
        among_ascii = _LATIN.get(language, 0.0) if letter.isalpha() else 0.0
        return 2.3 + rank / 9 + among_ascii + (_COST_OF_CAPITAL if letter.isupper() else 0.0)
    if letter == "\ufffd" or unicodedata.category(letter) in {"Cc", "Cn", "Co", "Cs"}:
        return 18.0
    if "\u3000" <= letter <= "\u303f" or "\uff01" <= letter <= "\uff60":
        return 8.5
    return 10.3 if _is_everyday(letter, language) else 13.5


@lru_cache
def _ranks(language: str) -> dict[str, int]:
    return {letter: rank for rank, letter in enumerate(LETTERS[language])}


def _is_everyday(letter: str, language: str) -> bool:
    if language not in _IDEOGRAPHIC:
        return False
    encoding, first, last = _IDEOGRAPHIC[language]
    encoded = letter.encode(encoding, "ignore")
    return len(encoded) == 2 and first <= encoded[0] <= last
