"""Tell text that nobody can read: glyph numbers that a font without a usable map gives for letters."""

import re
import unicodedata
from collections import Counter

_ODD = re.compile("[\x00\x01\x04-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]")
_SIGNS = re.compile(r"[!-/:-@\[-`{-~]")
_WORDS_AND_SPACES = re.compile(r"[^\W\d_]{3,}|(?<=\S) (?=\S)")
_MOST_ODD = 0.3
_SCRIPTS_OF_A_PAGE = 4
_LEAST_OF_THEM = 0.85

_LINE_OF_SIGNS = 0.4
"""A line of which this share are ASCII signs is no line of words."""
_LEAST_CHARACTERS = 100
_LEAST_KINDS_OF_SIGNS = 12
"""Formulas and dotted lines have many signs, but few kinds of them."""
_MOST_IN_WORDS_AND_SPACES = 0.1
"""Code has many kinds of signs, but between words; a font without a map gives a sign for the space as well."""


def abnormality(text: str) -> float:
    """Return the share of letters that no font's map explains."""
    return len(_ODD.findall(text)) / max(1, len(text))


def is_jumbled(text: str) -> bool:
    """Tell glyph numbers taken for letters: no real page mixes so many scripts."""
    scripts = Counter(unicodedata.name(letter, "?").partition(" ")[0] for letter in text[:4000] if letter.isalpha())
    common = sum(count for _, count in scripts.most_common(_SCRIPTS_OF_A_PAGE))
    return scripts.total() > 20 and common < _LEAST_OF_THEM * scripts.total()


def readable(text: str) -> str:
    """Return a page's text without what cannot be read: nothing of it, or runs of lines that are all signs."""
    if abnormality(text) > _MOST_ODD or is_jumbled(text):
        return ""
    kept: list[str] = []
    run: list[str] = []
    for line in (*text.split("\n"), None):
        if line is not None and _is_of_signs(line):
            run.append(line)
            continue
        if not _is_unreadable(run):
            kept += run
        run = []
        if line is not None:
            kept.append(line)
    return "\n".join(kept)


def _is_of_signs(line: str) -> bool:
    letters = "".join(line.split())
    return len(_SIGNS.findall(letters)) >= _LINE_OF_SIGNS * len(letters) > 0


def _is_unreadable(lines: list[str]) -> bool:
    run = "".join("".join(lines).split())
    if len(run) < _LEAST_CHARACTERS or len(set(_SIGNS.findall(run))) < _LEAST_KINDS_OF_SIGNS:
        return False
    return sum(map(len, _WORDS_AND_SPACES.findall("\n".join(lines)))) <= _MOST_IN_WORDS_AND_SPACES * len(run)
