"""LanceDB, Chroma and txtai at the same work, each with the index that its documentation gives for this size.

They are the extra `bench`; none is imported before it is asked for. Every one gets the same passages, vectors, filters
and `top_k`, and answers with the passages' texts.
"""

import importlib.util
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from grown_collection import GrownDocument, GrownQueries, slot_of
from numpy.typing import NDArray
from search_engines import Engine, Footnote, Mode, Selection

_ROWS = 5_000


class LanceDB:
    """IVF_PQ with exact re-scoring, full-text search, and their fusion by RRF."""

    name = "LanceDB"
    how = (
        "IVF_PQ (default partitions, 96 sub-vectors), nprobes 40, refine_factor 10; FTS index; hybrid by RRFReranker; "
        "BTREE on slot and document, prefilter"
    )
    modes: tuple[Mode, ...] = ("hybrid", "dense", "keyword")
    threads = True

    def __init__(self) -> None:
        self._lancedb = _needed("lancedb")
        self._reranker = _needed("lancedb.rerankers").RRFReranker()

    def build(self, folder: Path, documents: Iterable[GrownDocument]) -> None:
        """Write the rows in batches, then make the indexes."""
        table = None
        for rows in _batches(_rows(documents)):
            records = [
                {"number": row.number, "document": row.document, "slot": row.slot, "text": row.text, "vector": vector}
                for row, vector in rows
            ]
            if table is None:
                table = self._lancedb.connect(folder).create_table("passages", _arrow(records))
            else:
                table.add(_arrow(records))
        if table is None:
            return
        table.optimize()
        table.create_index(metric="cosine", num_sub_vectors=96, index_type="IVF_PQ")
        table.create_fts_index("text")
        table.create_scalar_index("slot")
        table.create_scalar_index("document")
        table.optimize()

    def open(self, folder: Path, queries: GrownQueries) -> None:
        """Open the table."""
        self._table = self._lancedb.connect(folder).open_table("passages")
        self._queries = queries

    def search(self, question: str, mode: Mode, top_k: int, chosen: Selection | None) -> Sequence[int]:
        """Search with the filter before the ranking."""
        if mode == "keyword":
            query = self._table.search(question, query_type="fts")
        elif mode == "dense":
            query = self._table.search(self._queries.embed_queries([question])[0]).nprobes(40).refine_factor(10)
        else:
            vector = self._queries.embed_queries([question])[0]
            query = self._table.search(query_type="hybrid").vector(vector).text(question)
            query = query.nprobes(40).refine_factor(10).rerank(self._reranker)
        if chosen is not None:
            query = query.where(_sql(chosen))
        found = query.select(["number", "text"]).limit(top_k).to_list()
        return [row["number"] for row in found]

    def close(self) -> None:
        """Forget the table."""
        del self._table


EF_SEARCH = 400
"""Of Chroma's HNSW: with 200 it found 0.979 of the true ten among 100,000, which is no equal recall."""


class Chroma:
    """HNSW with a wider search; it has no BM25 of its own, so only the dense leg stands beside it."""

    name = "Chroma"
    how = f"HNSW cosine, max_neighbors 32, ef_construction 200, ef_search {EF_SEARCH}; dense only, for want of BM25"
    modes: tuple[Mode, ...] = ("dense",)
    threads = True

    def __init__(self) -> None:
        self._chroma = _needed("chromadb")

    def build(self, folder: Path, documents: Iterable[GrownDocument]) -> None:
        """Add the rows in batches; the index grows with them."""
        index = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200, "ef_search": EF_SEARCH}
        collection = self._client(folder).create_collection(
            "passages", configuration={"hnsw": index}, embedding_function=None
        )
        for rows in _batches(_rows(documents)):
            collection.add(
                ids=[str(row.number) for row, _ in rows],
                embeddings=np.stack([vector for _, vector in rows]),
                documents=[row.text for row, _ in rows],
                metadatas=[{"slot": row.slot, "document": row.document} for row, _ in rows],
            )

    def open(self, folder: Path, queries: GrownQueries) -> None:
        """Open the collection."""
        self._collection = self._client(folder).get_collection("passages", embedding_function=None)
        self._queries = queries

    def search(self, question: str, mode: Mode, top_k: int, chosen: Selection | None) -> Sequence[int]:
        """Ask for the nearest within the filter."""
        if mode != "dense":
            raise ValueError(f"Chroma has no {mode} search")
        where: Mapping[str, Any] | None = None
        if chosen is not None:
            where = (
                {"document": {"$in": list(chosen.documents)}} if chosen.documents else {"slot": {"$lt": chosen.percent}}
            )
        found = self._collection.query(
            query_embeddings=self._queries.embed_queries([question]),
            n_results=top_k,
            where=where,
            include=["documents", "distances"],
        )
        return [int(number) for number in found["ids"][0]]

    def close(self) -> None:
        """Forget the collection."""
        del self._collection

    def _client(self, folder: Path) -> Any:
        settings = self._chroma.config.Settings(anonymized_telemetry=False)
        return self._chroma.PersistentClient(str(folder), settings=settings)


class Txtai:
    """The faiss index that it chooses, its own BM25, their scores fused, and SQLite for texts and filters."""

    name = "txtai"
    how = (
        "hybrid (faiss IVF that it sizes itself, nprobe 64; BM25 with normalised scores), content in SQLite; "
        "filters by SQL over as many candidates as let top_k through, at most 10,000"
    )
    modes: tuple[Mode, ...] = ("hybrid", "dense")
    threads = False

    def __init__(self) -> None:
        self._txtai = _needed("txtai")

    def build(self, folder: Path, documents: Iterable[GrownDocument]) -> None:
        """Index all rows at once, as it does."""
        waiting: deque[NDArray[np.float32]] = deque()

        def rows() -> Iterator[tuple[int, dict[str, Any], None]]:
            for row, vector in _rows(documents):
                waiting.append(vector)
                yield row.number, {"text": row.text, "slot": row.slot, "document": row.document}, None

        embeddings = self._txtai.Embeddings(
            method="external",
            transform=lambda texts: np.stack([waiting.popleft() for _ in texts]),
            content=True,
            hybrid=True,
            faiss={"nprobe": 64},
        )
        embeddings.index(rows())
        del embeddings.config["transform"]
        embeddings.save(str(folder))
        embeddings.close()

    def open(self, folder: Path, queries: GrownQueries) -> None:
        """Load the index."""
        self._embeddings = self._txtai.Embeddings()
        self._embeddings.load(str(folder), config={"transform": lambda texts: queries.embed_queries(texts)})
        self._scoring = self._embeddings.scoring

    def search(self, question: str, mode: Mode, top_k: int, chosen: Selection | None) -> Sequence[int]:
        """Search; without its keyword index for the dense leg alone."""
        self._embeddings.scoring = None if mode == "dense" else self._scoring
        if chosen is None:
            statement, candidates = "select id, text, score from txtai where similar(:question)", top_k
        else:
            candidates = min(10_000, round(2 * top_k * 100 / chosen.percent))
            statement = f"select id, text, score from txtai where similar(:question, {candidates}) and {_sql(chosen)}"
        found = self._embeddings.search(statement, top_k, parameters={"question": question})
        return [int(row["id"]) for row in found]

    def close(self) -> None:
        """Close the index."""
        self._embeddings.close()


ENGINES: Mapping[str, Callable[[], Engine]] = {
    "footnote": Footnote,
    "lancedb": LanceDB,
    "chroma": Chroma,
    "txtai": Txtai,
}


_PACKAGES = {"lancedb": "lancedb", "chroma": "chromadb", "txtai": "txtai"}


def missing_rivals(names: Iterable[str]) -> list[str]:
    """Return the packages of the rivals that are not installed."""
    return [_PACKAGES[name] for name in names if importlib.util.find_spec(_PACKAGES[name]) is None]


def _needed(module: str) -> Any:
    # Neither a model hub nor a telemetry server is to be asked in a measurement.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("LANCEDB_LOG", "error")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise SystemExit(f"{package} is not installed; the rivals need `pip install 'footnote[bench]'`") from error


class _Row:
    __slots__ = ("document", "number", "slot", "text")

    def __init__(self, number: int, document: int, text: str) -> None:
        self.number, self.document, self.slot, self.text = number, document, slot_of(document), text


def _rows(documents: Iterable[GrownDocument]) -> Iterator[tuple[_Row, NDArray[np.float32]]]:
    number = 0
    for document in documents:
        for text, vector in zip(document.texts, document.vectors, strict=True):
            yield _Row(number, document.number, text), vector
            number += 1


def _batches(
    rows: Iterator[tuple[_Row, NDArray[np.float32]]],
) -> Iterator[list[tuple[_Row, NDArray[np.float32]]]]:
    while batch := list(islice(rows, _ROWS)):
        yield batch


def _arrow(records: Sequence[Mapping[str, Any]]) -> Any:
    arrow = _needed("pyarrow")
    vectors = np.concatenate([record["vector"] for record in records])
    columns = {name: [record[name] for record in records] for name in ("number", "document", "slot", "text")}
    width = len(records[0]["vector"])
    return arrow.table({**columns, "vector": arrow.FixedSizeListArray.from_arrays(arrow.array(vectors), width)})


def _sql(chosen: Selection) -> str:
    if chosen.documents:
        return f"document in ({', '.join(map(str, chosen.documents))})"
    return f"slot < {chosen.percent:g}"
