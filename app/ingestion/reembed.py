"""The verb `reembed`: move a collection to another embedding model while the vectors that it has go on answering."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.job import Job
from app.embedding_space import same_space
from app.errors import Cancelled, EmbeddingUnavailable, UpstreamRejected
from app.indexes.opening import OpenCollection
from app.inference.port import Embedder
from app.ingestion.embedding import BATCH
from app.ingestion.ingest import Ingestion
from app.ingestion.port import JobReport
from app.stores.chunks import chunk_id
from app.stores.upkeep import NextText, StoreUpkeep

PATIENT_ROUNDS = 2
"""Rounds in which what is written meanwhile is left to the next one, so that no writer waits."""


def run_reembed(ingestion: Ingestion, opened: OpenCollection, job: Job, report: JobReport) -> dict[str, Any]:
    """Do a `reembed` job; killed at any moment, it goes on from its last batch.

    The vectors of the next space gather beside the present ones, and the next index beside the present one. Then one
    transaction puts them in their place, and every process opens the next index with its next search.
    """
    embedder = ingestion.embedders.get(job.payload["model"])
    upkeep = opened.store.upkeep
    present = opened.store.embedding_space()
    embedded = 0
    if present is not None and not same_space(present, embedder.space):
        try:
            embedded = _move(opened, embedder, report)
        except Cancelled:
            upkeep.forget_next()
            raise
    # The store tells which model embeds a query; the settings that follow it only name what is there. From the swap on
    # nothing here can be cancelled.
    ingestion.collections.set_embedding_model(opened.id, job.payload["model"])
    opened.catch_up()
    opened.remove_other_files()
    return {"model": embedder.space.model, "dimensions": embedder.space.dimensions, "embedded": embedded}


def _move(opened: OpenCollection, embedder: Embedder, report: JobReport) -> int:
    upkeep = opened.store.upkeep
    space = upkeep.begin_next(embedder.space)
    embedded = 0

    def embed_last(texts: Sequence[NextText]) -> dict[bytes, NDArray[np.float32]]:
        nonlocal embedded
        fresh = _embedded(embedder, texts)
        embedded += len(fresh)
        return fresh

    for rounds in count(1):
        embedded += _embed_lacking(upkeep, embedder, report)
        report.stage("index")
        opened.build_next(space)
        report.stage("swap")
        # Where documents come faster than they are embedded, the last few are embedded while their writers wait.
        if upkeep.adopt_next(embed_last if rounds > PATIENT_ROUNDS else None):
            break
    return embedded


def _embed_lacking(upkeep: StoreUpkeep, embedder: Embedder, report: JobReport) -> int:
    """Embed the texts that have no vector in the next space."""
    done, total = upkeep.next_counts()
    report.stage("embed", total=total, unit="texts")
    embedded, after = 0, 0
    # No more than lacked at first: those that come meanwhile are the next round's.
    while embedded < total - done and (page := upkeep.lacking_texts(after, BATCH)):
        report.advance(min(done + embedded, total))
        fresh = _embedded(embedder, page)
        upkeep.keep_next(fresh)
        embedded += len(fresh)
        after = page[-1].chunk_key
    upkeep.keep_next_parents()
    report.advance(total)
    return embedded


def _embedded(embedder: Embedder, texts: Sequence[NextText]) -> dict[bytes, NDArray[np.float32]]:
    """Return the vector of each distinct text by its hash."""
    distinct = {each.text_hash: each for each in texts}
    return dict(zip(distinct, _embed(embedder, list(distinct.values())), strict=True))


def _embed(embedder: Embedder, texts: Sequence[NextText]) -> NDArray[np.float32]:
    try:
        return embedder.embed_passages([each.text for each in texts])
    except (EmbeddingUnavailable, UpstreamRejected) as error:
        place = error.extra.pop("index", None)
        if isinstance(place, int):
            error.extra["chunk_id"] = chunk_id(texts[place].chunk_key)
        raise
