"""Count an embedder's tokens in another process; imports no model runtime and no SDK."""

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from app.inference.port import TokenCounterSpec

# Pieces that no common vocabulary joins: a word's letters, a run of capitals, one digit, one sign, white space that
# is more than a single blank.
_ASCII_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[!-/0-9:-@\[-`{-~]|\n|\t|[^\S\n]{2,}")
_LETTERS_IN_A_TOKEN = 3
_CAPITALS_IN_A_TOKEN = 2

# Byte-level vocabularies spend one to two tokens on a Chinese character and two on a rare sign, others at most one.
_FOREIGN_SIGN = re.compile(r"[^\w\s\x00-\x7f]")
_BYTES_IN_A_TOKEN = 2
_CONTROL_TOKENS = 3


@lru_cache(maxsize=4)
def load_token_counter(spec: TokenCounterSpec) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text embedded as a passage, prefix and control tokens included.

    A tokenizer is read once in a process and kept.
    """
    if spec.kind == "estimate":
        return estimate_tokens
    if spec.path is None:
        raise ValueError("a sentencepiece counter needs the path of its model file")
    # Imported here: a process that estimates needs no tokenizer.
    from app.inference.embedders.sentencepiece_tokenizer import SentencePieceTokenizer

    return SentencePieceTokenizer(Path(spec.path)).count_passage


def estimate_tokens(text: str) -> int:
    """Return a count that an unknown model's tokenizer stays below on prose, code and tables of any script."""
    foreign_bytes = len(text.encode("utf-8", "replace")) - sum(map(str.isascii, text))
    foreign_bytes += len(_FOREIGN_SIGN.findall(text))
    pieces = sum(_tokens_of(piece) for piece in _ASCII_PIECE.findall(text))
    return _CONTROL_TOKENS + pieces - (-foreign_bytes // _BYTES_IN_A_TOKEN)


def _tokens_of(piece: str) -> int:
    if not piece[0].isalpha():
        return 1
    return -(-len(piece) // (_CAPITALS_IN_A_TOKEN if piece.isupper() else _LETTERS_IN_A_TOKEN))
