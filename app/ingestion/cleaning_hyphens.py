"""Join the words that line ends broke, with or without their hyphen."""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from app.ingestion.cleaning_breaks import SOFT_HYPHEN
from app.ingestion.cleaning_edits import Edit

_BROKEN = re.compile(rf"\b[^\W\d_]++(?:(?:{SOFT_HYPHEN}\n?|[-‐]\n\n?)[^\W\d_]++)+")
_SEAM = re.compile(rf"(?<=(?P<before>\w))(?P<hyphen>{SOFT_HYPHEN}|[-‐](?=\n))(?P<end>\n{{0,2}})(?=(?P<after>\w))")
_WORD = re.compile(r"[^\W\d_]+(?:[-‐][^\W\d_]+)*")
_BEFORE = re.compile(r"[^\W\d_]*$")
_AFTER = re.compile(r"[^\W\d_]*")
_LONGEST_WORD = 40
_CONJUNCTIONS = frozenset(("and", "und", "oder", "bzw"))
"""What stands after a hyphen that stands for a word to come: pre- and post-war."""
_SHORTEST_PART = 4


class Seam(NamedTuple):
    """What becomes of a hyphen at a line end: taken out, or kept because it seems to belong to the word."""

    edit: Edit
    is_joined: bool


def soft_hyphen_edits(text: str, taken: Container[int] = ()) -> Iterator[Edit]:
    """Yield the removal of each soft hyphen but those at places that are taken."""
    place = text.find(SOFT_HYPHEN)
    while place >= 0:
        if place not in taken:
            yield Edit(place, place + 1, "")
        place = text.find(SOFT_HYPHEN, place + 1)


class Hyphenation:
    """Decide about hyphens at line ends by the words that the document itself has elsewhere."""

    def __init__(self, text: str) -> None:
        self._text = text

    def edits(self) -> Iterator[Seam]:
        """Yield what becomes of each hyphen at a line end that stands inside a word, and of soft hyphens."""
        for seam in _SEAM.finditer(self._text):
            if len(seam["end"]) == 2 and not (seam["before"].islower() and seam["after"].islower()):
                continue
            first = _BEFORE.search(self._text[max(0, seam.start() - _LONGEST_WORD) : seam.start()])
            after = _AFTER.match(self._text, seam.end(), seam.end() + _LONGEST_WORD)
            parts = (first[0] if first else "", after[0] if after else "")
            if parts[1].casefold() in _CONJUNCTIONS and not self._words["".join(parts).casefold()]:
                yield Seam(Edit(seam.start(), seam.end(), "- "), is_joined=False)
            elif self._is_one_word(*parts, seam):
                yield Seam(Edit(seam.start(), seam.end(), ""), is_joined=True)
            else:
                yield Seam(Edit(seam.start(), seam.end(), "-"), is_joined=False)

    def _is_one_word(self, first: str, second: str, seam: re.Match[str]) -> bool:
        joined, hyphenated = (first + second).casefold(), f"{first}-{second}".casefold()
        if first and second and (self._words[joined] or self._words[hyphenated]):
            return self._words[joined] >= self._words[hyphenated]
        if not (seam["before"].islower() and seam["after"].islower()):
            # An acronym, a name or a number keeps its hyphen.
            return _has_no_case(seam["before"] + seam["after"])
        if self._is_in_chain(seam.start() - len(first)) or self._is_address(seam.start()):
            return False
        are_words = all(self._words[part.casefold()] for part in (first, second))
        return not (are_words and min(len(first), len(second)) >= _SHORTEST_PART)

    def _is_in_chain(self, start: int) -> bool:
        return start > 1 and self._text[start - 1] in "-‐" and self._text[start - 2].isalnum()

    def _is_address(self, place: int) -> bool:
        before = self._text[max(0, place - 2 * _LONGEST_WORD) : place].split()
        return bool(before) and any(sign in before[-1] for sign in ("/", "@", "_", "www."))

    @cached_property
    def _words(self) -> Mapping[str, int]:
        """Return how often the document has each word that no line end breaks."""
        whole = _BROKEN.sub(" ", self._text).replace("‐", "-")
        return Counter(map(str.casefold, _WORD.findall(whole)))


def _has_no_case(letters: str) -> bool:
    return letters.isalpha() and letters.lower() == letters.upper()
