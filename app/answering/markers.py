"""Read and write the markers of an answer, `[n]` for its n-th source."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.answering.sentences import Sentence, script, split_sentences

MAX_RANGE = 50
"""The most sources that one `[1-9]` stands for."""

_NUMBER = r"\d{1,3}(?:\s*[-–]\s*\d{1,3})?"
_MARKER = (
    r"[\[［【]\s*(?:\^|[Ss]ources?:?\s+|来源\s*|來源\s*)?"
    rf"{_NUMBER}(?:\s*(?:[,，、;；&]|\band\b)\s*{_NUMBER})*\s*(?:†[^\]］】\n]*)?[\]］】]"
)
_ONE_MARKER = re.compile(_MARKER)
_MARKERS = re.compile(rf"(?<![ \t])[ \t]*{_MARKER}(?:[ \t]*{_MARKER})*[ \t]*")
_RANGE = re.compile(r"(\d{1,3})(?:\s*[-–]\s*(\d{1,3}))?")
_CANONICAL = re.compile(r"\[\d{1,3}\](?:\[\d{1,3}\])*")
_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`", re.DOTALL)
_ENUMERATOR = re.compile(r"\d{1,3}[.)、]\s+")
_CLOSING = frozenset(".。!?！？")


@dataclass(frozen=True, slots=True)
class Claim:
    """What a group of markers stands for, and the place of its sentence in the answer."""

    text: str
    markers: tuple[int, ...]
    start: int
    end: int


def canonical_markers(text: str, source_count: int) -> tuple[str, int]:
    """Return the text with each marker as `[n]`, and how many were removed because no source has their number.

    `[1, 2]`, `[1-3]`, `［１］`, `【1】` and `[source 1]` are understood; code is left alone.
    """
    all_removed = 0
    while True:
        text, removed = _rewritten_once(text, source_count)
        all_removed += removed
        # What is left when one marker leaves another's brackets, as in `[1[9]]`, is a marker too.
        if not removed:
            return text, all_removed


def claims_of(text: str) -> list[Claim]:
    """Return what each group of canonical markers stands for: its sentence's words since the group before it."""
    groups = list(_outside_code(_CANONICAL, text))
    claims: list[Claim] = []
    spoken: Sentence | None = None
    for sentence in split_sentences(text):
        inside = [group for group in groups if sentence.start <= group.start() < sentence.end]
        # Markers on a line of their own speak of the sentence before them.
        if spoken is None or _has_words(_CANONICAL.sub("", sentence.text)):
            spoken = sentence
        begin = sentence.start
        for group in inside:
            end = sentence.end if group is inside[-1] else group.start()
            words = _CANONICAL.sub("", text[begin:end])
            words = words if _has_words(words) else _CANONICAL.sub("", spoken.text)
            claims.append(Claim(_spoken(words), tuple(_numbers(group[0])), spoken.start, spoken.end))
            begin = group.end()
    return claims


def without_markers(text: str) -> str:
    """Return the text without what would read as a marker, its white space made single spaces."""
    return canonical_markers(" ".join(text.split()), 0)[0]


def with_marker(sentence: str, marker: int) -> str:
    """Return the sentence with its marker, before the closing sign where one stands alone."""
    closing = ""
    if sentence[-1] in _CLOSING and sentence[-2:-1].isalnum() and "." not in sentence.rsplit(None, 1)[-1][:-1]:
        sentence, closing = sentence[:-1], sentence[-1]
    space = "" if script(sentence) == "cjk" else " "
    return f"{sentence}{space}[{marker}]{closing}"


def _rewritten_once(text: str, source_count: int) -> tuple[str, int]:
    kept: list[str] = []
    removed = position = 0
    for match in _outside_code(_MARKERS, text):
        numbers = _numbers(match[0])
        valid = dict.fromkeys(number for number in numbers if 1 <= number <= source_count)
        removed += sum(number not in valid for number in numbers)
        kept += text[position : match.start()], _rewritten(match, "".join(f"[{number}]" for number in valid))
        position = match.end()
    return "".join((*kept, text[position:])), removed


def _outside_code(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    code = [match.span() for match in _CODE.finditer(text)]
    for match in pattern.finditer(text):
        if not any(begin <= match.start() < end or begin < match.end() <= end for begin, end in code):
            yield match


def _numbers(markers: str) -> list[int]:
    numbers: list[int] = []
    for marker in _ONE_MARKER.findall(markers):
        for first, last in _RANGE.findall(marker.split("†", 1)[0]):
            numbers += range(int(first), min(int(last or first), int(first) + MAX_RANGE) + 1) or [int(first)]
    return numbers


def _rewritten(match: re.Match[str], markers: str) -> str:
    before = match[0][: len(match[0]) - len(match[0].lstrip(" \t"))]
    after = match[0][len(match[0].rstrip(" \t")) :]
    if markers:
        return before + markers + after
    text = match.string
    following = text[match.end() : match.end() + 1]
    if match.start() == 0 or text[match.start() - 1] == "\n":
        return ""
    stands_between_words = following.isalnum() or following in tuple("([{“\"'‘`*_#")
    return " " if (before or after) and stands_between_words else ""


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _spoken(words: str) -> str:
    return _ENUMERATOR.sub("", words.strip(), count=1) if _ENUMERATOR.match(words.strip()) else words.strip()
