"""Turn texts into the token ids of an XLM-R vocabulary; light enough for the process that parses documents."""

from collections.abc import Sequence
from pathlib import Path

import sentencepiece

QUERY_PREFIX = "query: "
PASSAGE_PREFIX = "passage: "

_CONTROL_TOKENS = 2
_WORD_START = "\u2581"

# The vocabulary was made when SentencePiece still took the zero-width joiner for a space.
_JOINER = "\u200d"

# SentencePiece takes memory many times a text's size, and a text of a whole book may be counted.
_LONGEST_COUNTED_WHOLE = 50_000


class SentencePieceTokenizer:
    """Tokenize with a SentencePiece model file whose control ids are the encoder's; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self._begin: int = self._processor.bos_id()
        self._end: int = self._processor.eos_id()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids between the control tokens; no text can produce a control token by itself."""
        cleaned = [_encodable(text) for text in texts]
        return [[self._begin, *ids, self._end] for ids in self._processor.encode(cleaned, num_threads=1)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return what each id stands for, with a blank where a word begins."""
        return [piece.replace(_WORD_START, " ") for piece in self._processor.id_to_piece(list(ids))]

    def shorten(self, ids: Sequence[int], length: int) -> list[int]:
        """Return the first `length` ids with the end token as the last."""
        return [*ids[: length - 1], self._end]

    def count_passage(self, text: str) -> int:
        """Return how many tokens the encoder reads when the text is embedded as a passage.

        A very long text is counted in slices, which may give a few tokens more, never fewer.
        """
        whole = _encodable(PASSAGE_PREFIX + text)
        slices = (whole[at : at + _LONGEST_COUNTED_WHOLE] for at in range(0, len(whole), _LONGEST_COUNTED_WHOLE))
        return _CONTROL_TOKENS + sum(len(self._processor.encode(part, num_threads=1)) for part in slices)


def _encodable(text: str) -> str:
    return text.replace(_JOINER, " ").encode("utf-8", "replace").decode()
