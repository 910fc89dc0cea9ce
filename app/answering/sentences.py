"""Cut a text into sentences with exact offsets: Latin and CJK punctuation, list items, table rows and headings."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MAX_CHARACTERS = 500
"""A longer sentence is cut at its last semicolon, comma or space before this."""

WRAPPED_COLUMNS = 40
"""A line below this many columns (a CJK character takes two) ends its sentence; longer ones may be wrapped text."""

_CLOSERS = "[\"'”’»」』）)\\]》】]*"
_MARKERS = r"(?:\s*[\[［【]\d{1,3}(?:\s*[,，]\s*\d{1,3})*[\]］】])*"
_END = re.compile(rf"(?:[。！？｡]+|[!?]+(?=\W|$)|\.+(?=\W|$)){_CLOSERS}{_MARKERS}")
_STRUCTURE = re.compile(r"\s*(?:[-*+•·‣▪◦]\s|\d{1,3}(?:[.)]\s|、)|\||#{1,6}\s|>|```|~~~)")
_PREFIX = re.compile(r"(?:[-*+•·‣▪◦>]\s+|#{1,6}\s+)+")
_NAMED_VALUE = re.compile(r"\w[\w .()/%&#$€'\[\]-]{0,60}[:：]\s")
_LAST_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|\.(?=[^\W_]))*$")
_SOFT_CUTS = ("；;\n", "，,、", " \t")

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")

# ruff: disable[SIM905]
_BEFORE_NAMES = frozenset(
    "mr mrs ms dr prof rev gen sen rep col lt capt sgt st mt vs cf e.g i.e approx z.b d.h bzw ca u.a vgl resp".split()
)
_BEFORE_NUMBERS = frozenset(
    "no nos nr fig figs eq eqs sec vol vols p pp ch abb art jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
# ruff: enable[SIM905]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence's place: `text == source[start:end]`."""

    start: int
    end: int
    text: str


def script(text: str) -> Literal["cjk", "other"]:
    """Return `cjk` where a fifth of the text is Han, kana or Hangul."""
    return "cjk" if len(_CJK.findall(text)) * 5 > len(text) else "other"


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text in order; pieces without a letter or digit are left out."""
    return [
        Sentence(begin, end, text[begin:end])
        for line_begin, line_end in _paragraphs(text)
        for sentence_begin, sentence_end in _sentences(text, line_begin, line_end)
        for piece_begin, piece_end in _pieces(text, sentence_begin, sentence_end)
        for begin, end in [_trimmed(text, piece_begin, piece_end)]
        if any(character.isalnum() for character in text[begin:end])
    ]


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    begin = position = 0
    while (line_end := text.find("\n", position)) >= 0:
        position = line_end + 1
        if _ends_here(text[text.rfind("\n", 0, line_end) + 1 : line_end], text, position):
            yield begin, line_end
            begin = position
    yield begin, len(text)


def _ends_here(line: str, text: str, following: int) -> bool:
    rest = text[following : following + 80]
    if not line.strip() or not rest.split("\n", 1)[0].strip():
        return True
    if _STRUCTURE.match(rest) or line.lstrip()[:1] in ("|", "#") or "\t" in line.strip():
        return True
    if _NAMED_VALUE.match(line) and _NAMED_VALUE.match(rest):
        # Two records of a table, or two fields of one.
        return True
    goes_on = rest.lstrip()[:1].islower() and not _NAMED_VALUE.match(rest)
    return not goes_on and _columns(line) < WRAPPED_COLUMNS


def _columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line[:WRAPPED_COLUMNS])


def _sentences(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _END.finditer(text, begin, end):
        if match.end() < end and not _is_end(text, begin, match):
            continue
        yield begin, match.end()
        begin = match.end()
    yield begin, end


def _is_end(text: str, begin: int, match: re.Match[str]) -> bool:
    if match[0][0] in "。！？｡":
        return True
    rest = text[match.end() : match.end() + 40]
    if not rest[0].isspace() and rest[0].isascii():
        return False
    if rest.lstrip()[:1].islower():
        return False
    return match[0] != "." or not _is_abbreviation(text[begin : match.start()], rest.lstrip()[:1])


def _is_abbreviation(before: str, following: str) -> bool:
    if before.strip().isdigit():
        return True
    found = _LAST_WORD.search(before[-24:])
    if found is None:
        return False
    word = found[0]
    is_initial = len(word) == 1 and word.isascii() and word.isupper()
    return is_initial or word.casefold() in (_BEFORE_NUMBERS if following.isdigit() else _BEFORE_NAMES)


def _pieces(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    while end - begin > MAX_CHARACTERS:
        limit = begin + MAX_CHARACTERS
        middle = begin + MAX_CHARACTERS // 3
        cut = next(
            (place + 1 for signs in _SOFT_CUTS if (place := max(text.rfind(s, middle, limit) for s in signs)) >= 0),
            limit,
        )
        yield begin, cut
        begin = cut
    yield begin, end


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    while begin < end and text[begin].isspace():
        begin += 1
    while end > begin and text[end - 1].isspace():
        end -= 1
    prefix = _PREFIX.match(text, begin, end)
    return (prefix.end() if prefix else begin), end
