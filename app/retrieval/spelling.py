"""Words near to a word: those one edit away, and those that a word still being typed may become."""

from collections.abc import Iterator

_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "αβγδεζηθικλμνξοπρστυφχψως", "абвгдежзийклмнопрстуфхцчшщъыьэюяіїєґ")
_ENDINGS = ("able", "al", "ally", "ation", "ed", "er", "es", "ies", "ing", "ion", "ity", "ive", "ly", "ment", "ness")

LEAST_LETTERS = 5
"""Letters of a word that may be misspelled: shorter ones have too many neighbours."""

MOST_LETTERS = 24


def misspellings(word: str) -> list[str]:
    """Return everything within one edit (Damerau 1964) of a folded word; nothing where no guess is worth it.

    A swap of two neighbours counts as one edit. Only words of five letters or more of one alphabet are guessed.
    """
    alphabet = next((letters for letters in _ALPHABETS if set(word) <= set(letters)), None)
    if alphabet is None or not LEAST_LETTERS <= len(word) <= MOST_LETTERS:
        return []
    return list(dict.fromkeys(edit for edit in _edits(word, alphabet) if edit != word))


def completions(prefix: str) -> list[str]:
    """Return the word with the rest of each ending that it may have begun, so that its stem is met too.

    An index holds `run`, not `running`, which nobody would find who has typed `runni`.
    """
    return [
        prefix + ending[begun:]
        for ending in _ENDINGS
        for begun in range(1, len(ending))
        if len(prefix) > begun and prefix.endswith(ending[:begun])
    ]


def _edits(word: str, alphabet: str) -> Iterator[str]:
    for place in range(len(word) + 1):
        head, tail = word[:place], word[place:]
        if tail:
            yield head + tail[1:]
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
        for letter in alphabet:
            yield head + letter + tail
            if tail:
                yield head + letter + tail[1:]
