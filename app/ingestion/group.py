"""Join the sentences of a document into chunks: neighbours stay together until their meaning drops.

It runs where the model is, after the process that parses has found the sentences.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.domain import Chunk, ChunkingOptions
from app.inference.token_counter import load_token_counter
from app.ingestion.chunkers.limits import ChunkLimits, chunk_limits
from app.ingestion.chunkers.pieces import Piece, to_chunks
from app.ingestion.contextualize import contextualize, reserved_tokens
from app.ingestion.port import CountTokens, Prepared, PrepareRequest

Embed: TypeAlias = Callable[[Sequence[Chunk]], NDArray[np.float32]]
"""Return one unit vector, float32, for each sentence."""

SEMANTIC = "semantic"

# Two sentences on each side are compared: one by itself may only lead from the last to the next.
_COMPARED = 2

# A group below this share of what fits joins the one after it.
_SCRAP = 8


def join_sentences(prepared: Prepared, request: PrepareRequest, embed: Embed) -> Prepared:
    """Return the document with its final chunks; one that was not cut into sentences as it is."""
    if request.chunking.strategy != SEMANTIC or len(prepared.chunks) < 2:
        return prepared
    count_tokens, extraction = load_token_counter(request.token_counter), prepared.extraction
    title = request.title or extraction.title or request.filename or ""
    reserved = reserved_tokens(extraction, title, count_tokens, request.window_tokens, request.contexts)
    sentences = [replace(sentence, context="") for sentence in prepared.chunks]
    pieces = joined(
        extraction.text,
        sentences,
        neighbour_similarities(embed(sentences)),
        request.chunking,
        count_tokens,
        request.window_tokens - reserved,
    )
    chunks = contextualize(title, to_chunks(extraction, pieces), count_tokens, request.window_tokens, request.contexts)
    counted = replace(extraction, details={**extraction.details, "sentences": len(sentences)})
    return replace(prepared, extraction=counted, chunks=tuple(chunks))


def neighbour_similarities(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine between what ends and what begins at each gap: float32, one less than the sentences."""
    sums = np.concatenate([np.zeros((1, vectors.shape[1]), np.float32), np.cumsum(vectors, axis=0, dtype=np.float32)])
    gaps = np.arange(1, len(vectors))
    before = sums[gaps] - sums[np.maximum(gaps - _COMPARED, 0)]
    after = sums[np.minimum(gaps + _COMPARED, len(vectors))] - sums[gaps]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    similarities: NDArray[np.float32] = np.einsum("ij,ij->i", before, after) / np.maximum(lengths, 1e-9)
    return similarities


def joined(
    text: str,
    sentences: Sequence[Chunk],
    similarities: NDArray[np.float32],
    options: ChunkingOptions,
    count_tokens: CountTokens,
    window_tokens: int,
) -> Iterator[tuple[Piece, tuple[str, ...]]]:
    """Yield the pieces with their heading paths; none goes over the beginning of a section.

    A gap is cut whose similarity is below the threshold, or among the lowest by the percentile.
    """
    limits = chunk_limits(options, count_tokens, window_tokens)
    least = options.threshold
    if least is None:
        least = float(np.percentile(similarities, 100 - options.percentile))
    for path, run in groupby(sentences, attrgetter("heading_path")):
        alike = list(run)
        first = alike[0].ordinal
        gaps = similarities[first : first + len(alike) - 1]
        cuts = [0, *(np.flatnonzero(gaps < least) + 1).tolist(), len(alike)]
        for start, end in _without_scraps(text, alike, cuts, limits):
            for piece in _fitting(text, alike, gaps, (start, end), limits):
                yield piece, path


def _without_scraps(
    text: str, sentences: Sequence[Chunk], cuts: Sequence[int], limits: ChunkLimits
) -> Iterator[tuple[int, int]]:
    """Yield the groups; a scrap joins the one after it where both fit together."""
    held = cuts[0]
    for start, end in pairwise(cuts):
        length = sentences[start - 1].end - sentences[held].start if start > held else 0
        is_scrap = length * _SCRAP < limits.capacity(text[sentences[held].start : sentences[end - 1].end])
        if start > held and not (is_scrap and _fits(text, sentences, (held, end), limits)):
            yield held, start
            held = start
    yield held, cuts[-1]


def _fitting(
    text: str, sentences: Sequence[Chunk], gaps: NDArray[np.float32], group: tuple[int, int], limits: ChunkLimits
) -> Iterator[Piece]:
    """Yield the group whole, or in two where the similarity is lowest away from its ends, and so on."""
    waiting = [group]
    while waiting:
        start, end = waiting.pop()
        first, last = sentences[start].start, sentences[end - 1].end
        tokens = sentences[start].token_count if end - start == 1 else limits.measure(text[first:last])
        if tokens is not None:
            yield Piece(first, last, tokens)
            continue
        margin = (end - start) // 4
        inner = range(start + 1 + margin, max(start + 2 + margin, end - margin))
        middle = min(inner, key=lambda place: float(gaps[place - 1]))
        waiting += [(middle, end), (start, middle)]


def _fits(text: str, sentences: Sequence[Chunk], group: tuple[int, int], limits: ChunkLimits) -> bool:
    return limits.measure(text[sentences[group[0]].start : sentences[group[1] - 1].end]) is not None
