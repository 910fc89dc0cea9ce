"""What a chunk may measure, and how many code points of a text that will be."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise

from app.domain import ChunkingOptions
from app.ingestion.port import CountTokens

# Text of every language is below this; more means runs of white space, which tokenizers melt into one token.
_CHARACTERS_IN_A_TOKEN = 16

_SAMPLE = 600
_SAMPLES = 3

# Tokens are spread unevenly: at this share of the limit few pieces come out above it and have to be cut again.
_FILL = 0.92


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The most code points and the most tokens of a chunk; `control_tokens` is what every text costs besides its own.

    `overlap` counts code points, or tokens where `overlap_in_tokens`. `boundaries` are places, sorted, where a text
    that is too long is cut before any other.
    """

    characters: int
    tokens: int
    overlap: int
    overlap_in_tokens: bool
    count_tokens: CountTokens
    control_tokens: int
    boundaries: tuple[int, ...] = ()

    def tokens_of(self, text: str) -> int:
        """Return how many tokens the text has of its own."""
        return self.count_tokens(text) - self.control_tokens

    def measure(self, text: str) -> int | None:
        """Return the text's tokens, or `None` when it is too long for a chunk."""
        if len(text) > self.characters:
            return None
        tokens = self.tokens_of(text)
        return tokens if tokens <= self.tokens else None

    def capacity(self, text: str) -> int:
        """Return how many code points of a text like this one are nearly always allowed; at least 1."""
        step = max(_SAMPLE, len(text) // _SAMPLES)
        sample = "".join(text[start : start + _SAMPLE] for start in range(0, len(text), step))
        tokens = max(1, self.tokens_of(sample))
        return max(1, min(self.characters, int(_FILL * self.tokens * len(sample) / tokens)))

    def parts(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the parts of `[start, end)` between boundaries; itself where it has none."""
        inside = self.boundaries[bisect_right(self.boundaries, start) : bisect_left(self.boundaries, end)]
        return list(pairwise((start, *inside, end)))

    def without_overlap(self) -> "ChunkLimits":
        """Return the limits of what a chunk adds to the one before it."""
        size = self.tokens if self.overlap_in_tokens else self.characters
        added = max(1, size - self.overlap)
        return replace(
            self,
            characters=max(1, self.characters * added // size),
            tokens=max(1, self.tokens * added // size),
            overlap=0,
        )

    def beside(self, context: str) -> "ChunkLimits":
        """Return the limits of a chunk that is embedded with a context, which gets half of the tokens at most."""
        taken = min(self.tokens_of(context + "\n"), self.tokens // 2)
        return replace(self, tokens=max(1, self.tokens - taken))


def chunk_limits(
    options: ChunkingOptions, count_tokens: CountTokens, window_tokens: int, boundaries: tuple[int, ...] = ()
) -> ChunkLimits:
    """Return the limits that options and window set together; chunks that overlap heed no boundaries."""
    control_tokens = count_tokens("")
    window = max(1, window_tokens - control_tokens)
    in_tokens = options.unit == "tokens"
    tokens = min(options.size, window) if in_tokens else window
    return ChunkLimits(
        characters=_CHARACTERS_IN_A_TOKEN * tokens if in_tokens else options.size,
        tokens=tokens,
        overlap=max(0, min(options.overlap, options.size - 1)),
        overlap_in_tokens=in_tokens,
        count_tokens=count_tokens,
        control_tokens=control_tokens,
        boundaries=() if options.overlap else boundaries,
    )
