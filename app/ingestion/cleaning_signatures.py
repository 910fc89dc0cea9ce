"""Recognise a line on other pages, whatever number it bears there."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

LONGEST_LINE = 200
"""A longer line is never a head or a foot."""

_ROMAN = re.compile(r"m{0,3}(?:c[md]|d?c{0,3})(?:x[cl]|l?x{0,3})(?:i[xv]|v?i{0,3})")
_NUMBER = r"(?P<number>\d{1,4}|[ivxlc]{1,7})"
_AT_START = re.compile(rf"[\W_]*{_NUMBER}(?=[^\w.]|\.?$)")
_AT_END = re.compile(rf"(?:^|[\s|/•·\[(]){_NUMBER}[\W_]*$")
_AFTER_WORD = re.compile(
    rf"\b(?:page|pg|p|seite|página|pagina|стр|slide|sheet)\b[.:]?\s*{_NUMBER}(?!\w)|第\s*(\d+)\s*[页頁]"
)
_LAST_WORD = re.compile(r"([^\W\d_]+)[\W_]*$")
# ruff: disable[SIM905]
_COUNTED = frozenset(
    "appendix article case chapter class clause day example exercise experiment figure group invoice item lesson level "
    "module month no number order part phase problem question quiz room round rule scene section session stage step "
    "table task test unit version volume week year aufgabe frage kapitel schritt tag teil übung".split()
)
# ruff: enable[SIM905]
"""What a number after them counts is more likely the text's own than the page's."""


class Signature(NamedTuple):
    """What is the same in lines of one kind: their letters in any order, and by how much a number leads the page's.

    Facing pages mirror their heads, so order says nothing; `offset` is `None` where no number moves with the pages.
    """

    letters: str
    offset: int | None


def signatures_of(line: str, page: int) -> Iterator[Signature]:
    """Yield what the line may be recognised by on other pages."""
    if len(line) > LONGEST_LINE:
        return
    folded = _folded(line)
    yield Signature(_bag(folded), None)
    for match in filter(None, (_AFTER_WORD.search(folded), _AT_START.match(folded), _counting_nothing(folded))):
        group = "number" if match["number"] is not None else 2
        number = _value(match[group])
        if number is not None:
            others = folded[: match.start(group)] + folded[match.end(group) :]
            yield Signature(_bag(others), number - page)


def _counting_nothing(folded: str) -> re.Match[str] | None:
    match = _AT_END.search(folded)
    before = _LAST_WORD.search(folded[: match.start("number")]) if match else None
    return None if before and before[1] in _COUNTED else match


def _folded(line: str) -> str:
    return unicodedata.normalize("NFKC", line).casefold()


def letters_of(line: str) -> str:
    """Return the letters and digits of a line, folded, in any order."""
    return _bag(_folded(line))


@lru_cache(maxsize=4096)
def _bag(folded: str) -> str:
    return "".join(sorted(filter(str.isalnum, folded)))


def _value(number: str) -> int | None:
    if number.isdecimal():
        return int(number)
    if not _ROMAN.fullmatch(number):
        return None
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[letter] for letter in number]
    return sum(-value if value < following else value for value, following in pairwise([*values, 0]))
