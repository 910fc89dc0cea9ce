"""Turn text into index terms, for chunks and for queries; measured in `docs/decisions/0003-analyzer.md`.

One regular expression cuts a text into runs. A run of a script that puts spaces between words is folded, stemmed and
remembered; a run of a script without spaces becomes its characters and its pairs of neighbours.
"""

import itertools
import operator
import re
import threading
import unicodedata
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import Stemmer

from app.errors import InvalidRequest
from app.indexes.languages import FUNCTION_WORDS, STEMMERS
from app.indexes.stop_words import FUNCTION_CHARACTERS, STOP_WORDS

VERSION = 2
"""Raised whenever the same text gives other terms, so that an index knows that it must be rebuilt."""

LONGEST_TERM = 64
"""Code points that a term keeps; what is longer was nearly always made by a machine."""

_REMEMBERED_RUNS = 65_536
_LONGEST_REMEMBERED_RUN = 40


def _ranges(points: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for point in points:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


# Han, kana, Hangul, Bopomofo, Thai, Lao, Burmese and Khmer.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1100-\u11ff"
    "\u1780-\u17d3\u2e80-\u2fd5\u3005-\u3007\u3021-\u302f\u3031-\u3035\u3038-\u303c\u3041-\u309a\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97c\uac00-\ud7fb\uf900-\ufad9\uff66-\uff9f\uffa1-\uffdc\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
# `\w` leaves out combining marks, which stand inside the words of most scripts, and the invisible joiners.
_MARKS = _ranges(point for point in range(0x300, 0x1F000) if unicodedata.category(chr(point))[0] == "M")
_MARKS += "\U000e0100-\U000e01ef"
_INVISIBLE = "\u00ad\u200b-\u200d\u2060\ufeff"

# U+3200 to U+33FF are squared words and units such as ㎏ and ㍿, which compatibility normalization spells out.
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[\u3200-\u33ff])"
_PART = rf"{_LETTER}+(?:[{_MARKS}{_INVISIBLE}]+{_LETTER}*)*"
_APOSTROPHE = "['\u2019\u02bc\uff07]"
_LINK = rf"(?:[-\u2010\u2011._]|{_APOSTROPHE}|(?<=\d),(?=\d))"
_EMOJI = "[\U0001f1e6-\U0001f1ff]{2}|[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"

_RUNS = re.compile(
    rf"(?<![^\W_])[A-Za-z](?:\+\+|\#)|{_PART}(?:{_LINK}{_PART})*|[{_UNSPACED}][{_UNSPACED}{_MARKS}]*|{_EMOJI}"
)
_PARTS = re.compile(_PART)
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
# A character with what normalization may melt into it: voicing marks of half-width kana, vowels of decomposed Hangul.
_CLUSTERS = re.compile(rf".[{_MARKS}\uff9e\uff9f\u1160-\u11ff\uffc2-\uffdc]*", re.DOTALL)
_APOSTROPHES = re.compile(_APOSTROPHE)
_POSSESSIVE = re.compile(rf"{_APOSTROPHE}[sS]$")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_DOTTED_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_ACRONYM = re.compile(rf"{_LETTER}(?:\.{_LETTER})+")

_SCRIPTS = {
    "latin": "0-9a-z\u00df-\u024f\u1e00-\u1eff",
    "greek": "\u0370-\u03ff",
    "cyrillic": "\u0400-\u052f",
    "armenian": "\u0531-\u0587",
    "arabic": "\u0620-\u06d3\u06d5-\u06ff",
    "devanagari": "\u0900-\u0963\u0966-\u097f",
    "tamil": "\u0b82-\u0bcd",
    "unspaced": _UNSPACED,
}
_SCRIPT_RUNS = re.compile(
    "|".join(f"(?P<{name}>[{ranges}]+)" for name, ranges in _SCRIPTS.items())
    + rf"|(?P<other>(?:[^\W_{''.join(_SCRIPTS.values())}]|[{_MARKS}])+)"
)
_STEMMED = {
    "latin": "english",
    "greek": "greek",
    "cyrillic": "russian",
    "armenian": "armenian",
    "arabic": "arabic",
    "devanagari": "hindi",
    "tamil": "tamil",
}
_SCRIPT_OF_LANGUAGE = {
    **dict.fromkeys(Stemmer.algorithms(), "latin"),
    **{language: script for script, language in _STEMMED.items()},
    "nepali": "devanagari",
    "persian": "arabic",
    "yiddish": "other",
}


def _folding() -> dict[int, str | None]:
    """Return what becomes of a code point after compatibility normalization and case folding."""
    table: dict[int, str | None] = {}
    # Latin and Greek: elsewhere a mark makes another letter (й, が).
    for point in (*range(0xDF, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)):
        plain = "".join(c for c in unicodedata.normalize("NFD", chr(point)) if not unicodedata.combining(c))
        if plain != chr(point):
            table[point] = plain
    plain_letters = ("ae", "oe", "o", "d", "d", "l", "i", "th", "h", "ng", "е")
    table |= dict(zip(map(ord, "æœøđðłıþħŋё"), plain_letters, strict=True))
    # Accents left over, Hebrew points, Arabic vowels and stretching, variation selectors, invisible joiners.
    dropped = ((0x300, 0x36F), (0x591, 0x5C7), (0x640, 0x640), (0x64B, 0x65F), (0x670, 0x670), (0xFE00, 0xFE0F))
    invisible = ((0xAD, 0xAD), (0x200B, 0x200D), (0x2060, 0x2060), (0xFEFF, 0xFEFF), (0xE0100, 0xE01EF))
    for first, last in dropped + invisible:
        table |= dict.fromkeys(range(first, last + 1))
    return table


_FOLDING = _folding()


def fold(word: str) -> str:
    """Return the word in compatibility form, without case and without the accents that writers leave out."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFKC", word).casefold().translate(_FOLDING)


@lru_cache
def stop_words_of(language: str | None) -> frozenset[str]:
    """Return the folded words that a query of a language does without; English ones for `None`."""
    words = FUNCTION_WORDS.get(language or "")
    return STOP_WORDS if words is None else frozenset(map(fold, words))


LocatedTerm: TypeAlias = tuple[str, int, int]
"""A term and the place in the text, `[start, end)` in code points, that it was made of."""


Parts: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""The terms of the smallest pieces of a run in their order, and the terms of several pieces together."""


class Analyzer:
    """Make terms. Thread-safe; meant to live as long as the process, because it remembers the words that it met.

    `language` is a Snowball algorithm, which replaces the default of its script, or `auto` for the defaults.
    A term is never empty, holds no white space and has at most `LONGEST_TERM` code points.
    """

    def __init__(self, language: str = "auto") -> None:
        stemmed = dict(_STEMMED)
        if language != "auto":
            if language not in _SCRIPT_OF_LANGUAGE:
                raise InvalidRequest(
                    f"no stemmer is called {language!r}; there are auto, {', '.join(sorted(_SCRIPT_OF_LANGUAGE))}"
                )
            stemmed[_SCRIPT_OF_LANGUAGE[language]] = language
        # The stemmer's own cache is off: whole runs are remembered here.
        self._stemmers = {script: Stemmer.Stemmer(name, 0) for script, name in stemmed.items()}
        self._lock = threading.Lock()
        self._known: dict[str, Parts] = {}
        self._of_language: dict[str, Analyzer] = {}
        self.language = language
        self.signature = f"{VERSION}/{language}/snowball-{Stemmer.version()}/unicode-{unicodedata.unidata_version}"

    def of(self, language: str | None) -> "Analyzer":
        """Return the analyzer of a language (ISO 639-1), this one where the language has no stemmer of its own."""
        name = STEMMERS.get(language or "")
        # By itself this one stems each script by its most usual language.
        if name is None or name == self.language or name in _STEMMED.values():
            return self
        with self._lock:
            if name not in self._of_language:
                self._of_language[name] = Analyzer(name)
            return self._of_language[name]

    def terms(self, text: str) -> list[str]:
        """Return the terms a chunk is indexed under, each as often as it occurs.

        Those of words and single characters come first, in the order of the text, so that phrases can be told by
        places; then those of pairs of characters and of joined compounds.
        """
        known = self._known
        found: list[str] = []
        joined: list[str] = []
        for run in _RUNS.findall(text):
            pieces, wholes = known.get(run) or self._run_terms(run)
            found += pieces
            if wholes:
                joined += wholes
        return found + joined

    def phrase(self, text: str) -> tuple[str, ...]:
        """Return the terms that stand one after another in the terms of every text that holds this one."""
        found: list[str] = []
        for run in _RUNS.findall(unicodedata.normalize("NFC", text)):
            found += (self._known.get(run) or self._run_terms(run))[0]
        return tuple(found)

    def stems(self, words: Sequence[str]) -> list[str]:
        """Return the term of each folded word, all of one script, remembering none: most of them are no words."""
        script = _SCRIPT_RUNS.match(words[0]) if words else None
        stemmer = self._stemmers.get(script.lastgroup or "") if script else None
        if stemmer is None:
            return list(words)
        with self._lock:
            stems: list[str] = stemmer.stemWords(list(words))
        return [stem or word for stem, word in zip(stems, words, strict=True)]

    def terms_with_offsets(self, text: str) -> list[LocatedTerm]:
        """Return the same terms with their places; the joined form of a compound has the place of the whole."""
        found: list[LocatedTerm] = []
        joined: list[LocatedTerm] = []
        for match in _RUNS.finditer(text):
            start, end = match.span()
            known = self._known.get(match[0])
            if known is not None and len(known[0]) == 1 and not known[1]:
                found.append((known[0][0], start, end))
                continue
            pieces, wholes = self._located(match[0])
            found += [(term, start + first, start + last) for term, first, last in pieces]
            joined += [(term, start + first, start + last) for term, first, last in wholes]
        return found + joined

    def query_terms(self, text: str) -> list[str]:
        """Return the distinct terms to ask an index for; see `query_terms_with_offsets`."""
        return list(dict.fromkeys(term for term, _, _ in self.query_terms_with_offsets(text)))

    def query_terms_with_offsets(self, text: str, stop_words: frozenset[str] = STOP_WORDS) -> list[LocatedTerm]:
        """Return the terms to ask an index for, with their places in the text in NFC.

        Stop words are left out unless there is nothing else. A compound is asked for by its parts alone, its joined
        form being there for those who write it so, unless a part is a single letter (`e-mail`, `x-ray`).
        """
        telling: list[LocatedTerm] = []
        empty: list[LocatedTerm] = []
        unspaced = _unspaced(stop_words)
        for match in _RUNS.finditer(unicodedata.normalize("NFC", text)):
            stopped = _stopped_places(match, stop_words, unspaced)
            pieces, wholes = self._located(match[0], joined=False)
            for term, first, last in pieces + wholes:
                located = (term, match.start() + first, match.start() + last)
                is_empty = FUNCTION_CHARACTERS.issuperset(term) or (first in stopped and last - 1 in stopped)
                (empty if is_empty else telling).append(located)
        return telling or empty

    def _run_terms(self, run: str) -> Parts:
        if _UNSPACED_START.match(run):
            return _gram_terms(run)
        pieces, wholes = self._located(run)
        terms = tuple(term for term, _, _ in pieces), tuple(term for term, _, _ in wholes)
        if len(run) <= _LONGEST_REMEMBERED_RUN:
            if len(self._known) >= _REMEMBERED_RUNS:
                self._known.clear()
            self._known[run] = terms
        return terms

    def _located(self, run: str, *, joined: bool = True) -> tuple[list[LocatedTerm], list[LocatedTerm]]:
        """Return the terms of the run's pieces and of its wholes, with their places in the run."""
        if _UNSPACED_START.match(run):
            return _grams(run)
        word = _POSSESSIVE.sub("", run)
        parts = list(_PARTS.finditer(word))
        if not parts or run[-1] in "+#":
            return [(fold(run), 0, len(run))], []
        pieces: list[LocatedTerm] = []
        wholes: list[LocatedTerm] = []
        for part in parts:
            self._add_words(part[0], part.start(), pieces, wholes)
        if len(parts) == 1:
            return pieces, wholes
        whole = fold(word)
        if _THOUSANDS.fullmatch(word):
            return [(whole.replace(",", "")[:LONGEST_TERM], 0, len(word))], []
        if _DOTTED_NUMBER.fullmatch(word):
            return pieces, [*wholes, (whole[:LONGEST_TERM], 0, len(word))]
        compound: list[LocatedTerm] = []
        self._add_words("".join(part[0] for part in parts), 0, compound, compound)
        # Parts of several scripts stay apart when joined.
        if len(compound) != 1:
            return pieces, wholes
        whole = compound[0][0]
        if _ACRONYM.fullmatch(word):
            return [(whole, 0, len(word))], []
        if joined or any(len(part[0]) == 1 for part in parts):
            wholes.append((whole, 0, len(word)))
        return pieces, wholes

    def _add_words(self, part: str, start: int, pieces: list[LocatedTerm], wholes: list[LocatedTerm]) -> None:
        """Add the stems of a part that starts at `start`; a change of script inside it is a boundary."""
        end = start + len(part)
        for match in _SCRIPT_RUNS.finditer(fold(part)):
            script, word = match.lastgroup or "other", match[0]
            if script == "unspaced":
                characters, pairs = _gram_terms(word)
                pieces += [(character, start, end) for character in characters]
                wholes += [(pair, start, end) for pair in pairs]
                continue
            stemmer = self._stemmers.get(script)
            if stemmer is not None:
                with self._lock:
                    word = stemmer.stemWord(word[:LONGEST_TERM]) or word
            pieces.append((word[:LONGEST_TERM], start, end))


def _is_plain(run: str) -> bool:
    return run.isalpha() and unicodedata.is_normalized("NFKC", run)


def _gram_terms(run: str) -> Parts:
    """Return each character, and each pair of neighbours."""
    if not _is_plain(run):
        characters, pairs = _grams(run)
        return [gram for gram, _, _ in characters], [gram for gram, _, _ in pairs]
    return list(run), list(map(operator.add, run, run[1:]))


def _grams(run: str) -> tuple[list[LocatedTerm], list[LocatedTerm]]:
    """Return what `_gram_terms` returns, with places."""
    if _is_plain(run):
        units = [(character, place, place + 1) for place, character in enumerate(run)]
    else:
        units = [
            (character, *cluster.span())
            for cluster in _CLUSTERS.finditer(run)
            for character in unicodedata.normalize("NFKC", cluster[0]).translate(_FOLDING)
        ]
    return units, [(a[0] + b[0], a[1], b[2]) for a, b in itertools.pairwise(units)]


def _stopped_places(run: re.Match[str], stop_words: frozenset[str], unspaced: re.Pattern[str] | None) -> Container[int]:
    """Return the places in the run of stop words; those that `unspaced` finds may be a part of it."""
    if _is_stop_word(run, stop_words):
        return range(len(run[0]))
    if unspaced is None:
        return ()
    return {place for found in unspaced.finditer(run[0]) for place in range(*found.span())}


@lru_cache(maxsize=64)
def _unspaced(stop_words: frozenset[str]) -> re.Pattern[str] | None:
    """Return what finds those of a script without spaces, `None` where there are none."""
    words = sorted(filter(_UNSPACED_START.match, stop_words), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, words))) if words else None


def _is_stop_word(run: re.Match[str], stop_words: frozenset[str]) -> bool:
    """Return whether a query can do without the run; `IT` among small letters and `A` after a word are names."""
    word = run[0]
    capital = word.isupper() and (len(word) > 1 or run.start() > 0) and not run.string.isupper()
    if capital and word not in ("I", "AND", "OR"):
        return False
    return _APOSTROPHES.sub("", _POSSESSIVE.sub("", fold(word))) in stop_words
