"""Find line ends that only the width of a page made, and dots that lead to a page number."""

import re
import unicodedata
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.ingestion.cleaning_edits import Edit

SOFT_HYPHEN = "\u00ad"

_NARROWEST = 30
_SHORT = 20
_NEIGHBOURS = 6
_FULL = 0.92
_FULL_BEFORE_LOWER_CASE = 0.7
_FEWEST_WORDS = 4
_LETTER_SHARE = 0.75
_CAPITALISED_SHARE = 0.55
_FEWEST_DOTS = 4

_TERMINAL = frozenset(".!?:;。！？：；…｡")
_CLOSERS = "\"'”’»」』）)]》】"
_OPENERS = frozenset("\"'“‘«「『（(《【[")
_CODE = re.compile(r"[{}<>=\\|_]")
_UNSPACED = re.compile(r"[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffee\U00020000-\U0003ffff]")
_UNKNOWABLE = re.compile(r"[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\uac00-\ud7ff]")
"""Hangul, Thai, Lao, Burmese, Khmer: their lines may break within a word or between two, and nothing tells which."""
_STRUCTURE = re.compile(
    r"[-–—*+•·‣▪◦●○■□➢✓❖\uf0b7]\s|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]\s|\d+(?:\.\d+)+\.?\s|\[\d{1,3}\]"
    r"|[（(]?[一二三四五六七八九十]{1,3}[)）、.]|第.{1,4}[章节節条條款]|\||#{1,6}\s|>"
    r"|(?:figure|fig\.|table|图|圖|表|chapter|appendix|algorithm)\s*[\dIVX]+\s*(?:[.:|—：]|$)",
    re.I,
)
_ABBREVIATION = re.compile(
    r"\b(?:al|cf|vs|approx|e\.g|i\.e|fig|figs|eq|no|nos|pp|vol|dr|mr|mrs|ms|prof|st|z\.b|d\.h)\.$", re.I
)
_FIRST_WORD = re.compile(rf"[^\s{SOFT_HYPHEN}]+")


class _Line(NamedTuple):
    start: int
    end: int
    text: str


def line_break_edits(text: str, spans: Sequence[tuple[int, int]], fixed: frozenset[int]) -> Iterator[Edit]:
    """Yield a space, or nothing between letters that are written without, for each line end inside a paragraph.

    `spans` are the pages in order, over whose edges a paragraph may go on. Lines that begin at `fixed` places
    (headings) begin a paragraph and are one of their own.
    """
    before: tuple[_Line, int] | None = None
    for start, end in spans:
        lines = list(_lines(text, start, end))
        widths = _widths(lines)
        if before and (filled := [line for line in lines if line.text.strip()]):
            yield from _over_the_page(*before, filled[0], fixed)
        for line, following, width in zip(lines, lines[1:], widths, strict=False):
            if line.start in fixed or following.start in fixed:
                continue
            seam = _seam(line.text, following.text, width)
            if seam is not None:
                yield Edit(line.end, following.start, seam)
        last = next(
            ((line, width) for line, width in zip(lines[::-1], widths[::-1], strict=True) if line.text.strip()), None
        )
        before = last or before


def _over_the_page(line: _Line, width: int, following: _Line, fixed: frozenset[int]) -> Iterator[Edit]:
    if line.start in fixed or following.start in fixed or not following.text.lstrip()[:1].islower():
        return
    seam = _seam(line.text, following.text, width)
    if seam is not None:
        yield Edit(line.end, following.start, seam)


def _lines(text: str, start: int, end: int) -> Iterator[_Line]:
    for line in text[start:end].split("\n"):
        yield _Line(start, start + len(line), line)
        start += len(line) + 1


def _widths(lines: Sequence[_Line]) -> list[int]:
    """Return how wide the text around each line is set, in columns."""
    # PDFium puts a line that ends in a hyphen and the one after it into one.
    columns = [[_columns(part) for part in line.text.rstrip().split(SOFT_HYPHEN)] for line in lines]
    columns = [[width for width in parts if width >= _NARROWEST] for parts in columns]
    near: list[int] = []
    widths = []
    for place in range(len(lines) + _NEIGHBOURS):
        for width in columns[place] if place < len(lines) else ():
            insort(near, width)
        for width in columns[place - 2 * _NEIGHBOURS - 1] if place > 2 * _NEIGHBOURS else ():
            del near[bisect_left(near, width)]
        if place >= _NEIGHBOURS:
            widths.append(near[len(near) * 4 // 5] if near else 0)
    return widths


def _columns(text: str) -> int:
    if text.isascii() or not _UNSPACED.search(text):
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _seam(line: str, following: str, width: int) -> str | None:
    """Return what to put between two lines of one paragraph, or `None` where they may be two."""
    line, following = line.rstrip(), following.strip()
    if not line or not following or width < _NARROWEST or _STRUCTURE.match(following):
        return None
    if _UNKNOWABLE.match(line[-1]) or _UNKNOWABLE.match(following) or line[-1] in "-‐" + SOFT_HYPHEN:
        return None
    tail = _columns(line[line.rfind(SOFT_HYPHEN) + 1 :])
    if _UNSPACED.match(line[-1]) or _UNSPACED.match(following):
        is_one = tail >= _FULL * width - 1 and not _ends_sentence(line)
        return "" if is_one and _goes_on(following) else None
    word = _FIRST_WORD.match(following)
    filled = (tail + 1 + len(word[0] if word else "")) / width
    if following[0].islower():
        is_one = filled >= (_FULL if _ends_sentence(line) else _FULL_BEFORE_LOWER_CASE)
    else:
        is_one = filled >= _FULL and not _ends_sentence(line) and _goes_on(following)
    return " " if is_one and _is_prose(line) else None


def _ends_sentence(line: str) -> bool:
    return line.rstrip(_CLOSERS)[-1:] in _TERMINAL and not _ABBREVIATION.search(line[-8:])


def _goes_on(following: str) -> bool:
    if following[0].isalpha():
        return True
    return (following[0] in _OPENERS or following[0].isdecimal()) and _columns(following) >= _SHORT


def _is_prose(line: str) -> bool:
    """Tell running text from headings, names, rows of a table, formulas and code."""
    words = line.split()
    signs_of_code = len(_CODE.findall(line)) + line.count("//") + line.endswith(";")
    if len(words) < _FEWEST_WORDS or signs_of_code > 1 or "\t" in line.strip():
        return False
    letters = sum(map(str.isalpha, line))
    if letters < _LETTER_SHARE * sum(map(len, words)):
        return False
    return sum(word[0].isupper() for word in words) <= _CAPITALISED_SHARE * len(words)


def leader_edits(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Edit]:
    """Yield ` … ` for each row of dots that leads from an entry to its page number at the end of its line."""
    for start, end in spans:
        for line in _lines(text, start, end):
            before = line.text.rstrip().rstrip("0123456789ivxlcdm")
            entry = before.rstrip(" .·•⋯…_\t")
            leader = line.text[len(entry) : len(before)]
            if entry and len(before) < len(line.text.rstrip()) and _dots(leader) >= _FEWEST_DOTS:
                yield Edit(line.start + len(entry), line.start + len(before), " … ")


def _dots(leader: str) -> int:
    return sum(3 if sign in "…⋯" else not sign.isspace() for sign in leader)
