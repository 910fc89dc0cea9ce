"""Compare ways of chunking: how often the passage that holds the answer is found, by the service's own path.

    python benchmarks/chunking.py
    python benchmarks/chunking.py --datasets xquad_en --only recursive --questions 20 --documents 4

Paragraphs of one article, or of neighbouring articles, are joined to documents that are longer than any chunk. Each
way cuts, embeds and indexes them with default settings in process, and questions are asked by hybrid search. Prints

- recall@5: the share of the answers that the first five passages hold whole, each counted once;
- nDCG@10: the same with a discount for the rank, where a passage gains what no passage before it held;
- tokens: what the first five passages cost whoever reads them.

A child of `parent_child` is judged as it is read: by its parent. Vectors are kept in `--cache` by the hash of their
text, so that another run embeds what is new.
"""

import argparse
import hashlib
import json
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.bootstrap import Services, build_services
from app.catalog.collections import Collection
from app.catalog.job import JobState
from app.domain import Passage
from app.embedding_space import EmbeddingSpace
from app.indexes.opening import OpenCollection
from app.inference import registry
from app.inference.port import Embedder, TokenCounterSpec
from app.inference.token_counter import load_token_counter
from app.ingestion.collections import create_collection, remove_collection
from app.ingestion.submission import Submission
from app.ingestion.work import run_ingest
from app.retrieval.planning import build_plan
from app.retrieval.run import Models
from app.retrieval.search import search
from app.settings import load_settings

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
CACHE = Path(tempfile.gettempdir()) / "footnote-chunking-vectors"
DATASETS = ("xquad_en", "xquad_zh", "cmrc2018", "chunkeval")
FILES = ("state_of_the_union.md", "wikitexts.md", "chatlogs.md")
"""Files of chunkeval; the two that are left out are six times as long as these together."""

PARAGRAPHS = 5
DEPTH = 10

WAYS: tuple[dict[str, Any], ...] = (
    {"strategy": "fixed", "size": 600, "overlap": 100},
    {"strategy": "fixed", "size": 1200, "overlap": 200},
    {"strategy": "tokens", "size": 128, "overlap": 16},
    {"strategy": "tokens", "size": 256, "overlap": 32},
    {"strategy": "recursive", "size": 400},
    {"strategy": "recursive", "size": 800},
    {"strategy": "recursive", "size": 1200},
    {"strategy": "recursive", "size": 1200, "overlap": 200},
    {"strategy": "recursive", "size": 2000},
    {"strategy": "markdown", "size": 800},
    {"strategy": "markdown", "size": 1200},
    {"strategy": "semantic", "size": 1200, "percentile": 80.0},
    {"strategy": "semantic", "size": 1200, "percentile": 90.0},
    {"strategy": "parent_child", "mode": "paragraph", "size": 300},
    {"strategy": "parent_child", "mode": "fixed", "size": 300, "parent_size": 1200},
    {"strategy": "parent_child", "mode": "fixed", "size": 300, "parent_size": 2000},
)


@dataclass(frozen=True)
class Question:
    """A question and its answers: a document's id and, for each answer, the places that hold it alike."""

    text: str
    document_id: str
    answers: tuple[tuple[tuple[int, int], ...], ...]


@dataclass
class DataSet:
    """Documents by id with their titles and texts, and questions."""

    format: str
    documents: dict[str, tuple[str, str]] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def part(self, documents: int | None, questions: int) -> "DataSet":
        """Return the first documents, and questions about them that are evenly spread."""
        kept = dict(list(self.documents.items())[:documents])
        asked = [question for question in self.questions if question.document_id in kept]
        step = max(1.0, len(asked) / questions)
        chosen = [asked[int(place * step)] for place in range(min(questions, len(asked)))]
        return DataSet(self.format, kept, chosen)


@dataclass(frozen=True)
class Measure:
    """What a way of chunking reached on one data set."""

    chunks: int
    mean_characters: float
    recall: float
    gain: float
    tokens: float
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="*", default=DATASETS, choices=DATASETS)
    parser.add_argument("--only", nargs="*", help="strategies; all by default")
    parser.add_argument("--documents", type=int, help="of each data set; all by default, 60 of cmrc2018")
    parser.add_argument("--questions", type=int, default=300, help="of each data set")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of model and vectors, kept between runs")
    options = parser.parse_args()
    data = {
        name: read(options.data, name).part(_documents(name, options.documents), options.questions)
        for name in options.datasets
    }
    print("| chunking | data set | chunks | mean characters | recall@5 | nDCG@10 | tokens of five | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    ways = [way for way in WAYS if not options.only or way["strategy"] in options.only]
    folder = Path(tempfile.mkdtemp(prefix="footnote-chunking-"))
    registry.EMBEDDERS["local"] = _remembering(options.cache)  # type: ignore[index]
    services = build_services(
        load_settings({"FOOTNOTE_MODELS": str(options.cache / "models"), "FOOTNOTE_DATA": str(folder)})
    )
    try:
        for way in ways:
            rows = {name: measure(services, dataset, way) for name, dataset in data.items()}
            for name, row in rows.items():
                print(_line(way, name, row), flush=True)
            print(_line(way, "mean", _mean(list(rows.values()))), flush=True)
    finally:
        services.close()
        shutil.rmtree(folder)


def measure(services: Services, dataset: DataSet, way: dict[str, Any]) -> Measure:
    """Ingest the documents in this way, ask the questions, and forget the collection."""
    started = time.perf_counter()
    settings = {"chunking": way}
    collection = create_collection(services.ingestion, "chunking", title=None, description=None, settings=settings)
    embedder = services.embedders.of_collection(collection.embedding_model)
    count_tokens = load_token_counter(embedder.token_counter)
    recalls, gains, tokens = [], [], []
    with services.opened.get(collection.id) as opened:
        _ingest(services, collection, opened, dataset)
        stats = opened.store.stats()
        for question in dataset.questions:
            plan = build_plan(question.text, services.settings, top_k=DEPTH)
            found = _as_read(opened, search(opened, Models(embedder), collection.name, plan).passages)
            recall, gain = judge(question, found)
            recalls.append(recall)
            gains.append(gain)
            tokens.append(sum(count_tokens(passage.text) for passage in found[:5]))
    characters = sum(len(text) for _, text in dataset.documents.values())
    remove_collection(services.ingestion, collection)
    return Measure(
        stats.chunks,
        characters / stats.chunks,
        statistics.fmean(recalls),
        statistics.fmean(gains),
        statistics.fmean(tokens),
        time.perf_counter() - started,
    )


@dataclass(frozen=True)
class Read:
    """A passage as it is read: a chunk, or the parent of one."""

    document_id: str
    start: int
    end: int
    text: str


def judge(question: Question, found: Sequence[Read]) -> tuple[float, float]:
    """Return recall@5 and nDCG@10 (Järvelin and Kekäläinen 2002, linear gains) of what was found."""
    held: set[int] = set()
    discounted, recall = 0.0, 0.0
    for rank, passage in enumerate(found[:DEPTH]):
        fresh = {
            place
            for place, alike in enumerate(question.answers)
            if passage.document_id == question.document_id
            and any(passage.start <= start and end <= passage.end for start, end in alike)
        } - held
        held |= fresh
        discounted += len(fresh) / math.log2(rank + 2)
        if rank < 5:
            recall = len(held) / len(question.answers)
    # At best the first passage holds all of them.
    return recall, discounted / len(question.answers)


def _as_read(opened: OpenCollection, passages: Sequence[Passage]) -> list[Read]:
    """Return the passages, or the parents that they are read in, each once, best first."""
    parents = opened.store.parents_of([int(passage.chunk_id[1:]) for passage in passages])
    read: dict[tuple[str, int, int], Read] = {}
    for passage in passages:
        shown = parents.get(int(passage.chunk_id[1:]), passage)
        place = (passage.document_id, shown.start, shown.end)
        read.setdefault(place, Read(*place, shown.text))
    return list(read.values())


class Silent:
    """A job's report that nobody hears."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id

    def stage(self, name: str, total: int | None = None, unit: str | None = None) -> None:
        """Say nothing."""

    def advance(self, done: int) -> None:
        """Say nothing."""


def _ingest(services: Services, collection: Collection, opened: OpenCollection, dataset: DataSet) -> None:
    originals = services.ingestion.originals_of(opened)
    for document_id, (title, text) in dataset.documents.items():
        submission = Submission(
            document_id, originals.write(text.encode()), media_type=f"text/{dataset.format}", title=title or None
        )
        services.ingestion.submit(collection, submission)
        job = services.jobs.claim("benchmark")
        assert job is not None
        result = run_ingest(services.ingestion, opened, job, Silent(job.id))
        services.jobs.finish(job.id, "benchmark", JobState.SUCCEEDED, result=result)
        found = opened.store.text(document_id, 0, None)
        assert found == text, f"the answers' places are of another text than that of {document_id}"
    opened.catch_up()


class Remembering:
    """An embedder that keeps every vector in a folder, by model and text, and asks another for those that are new."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder, self._folder = embedder, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, NDArray[np.float32]] = {}
        for file in sorted(folder.glob("*.npz")):
            with np.load(file) as kept:
                self._known |= dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))

    @property
    def space(self) -> EmbeddingSpace:
        return self._embedder.space

    @property
    def window_tokens(self) -> int:
        return self._embedder.window_tokens

    @property
    def token_counter(self) -> TokenCounterSpec:
        return self._embedder.token_counter

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed("query", texts)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed("passage", texts)

    def load(self) -> None:
        self._embedder.load()

    def close(self) -> None:
        if self._known:
            keys, vectors = np.array(list(self._known)), np.stack(list(self._known.values()))
            for file in self._folder.glob("*.npz"):
                file.unlink()
            np.savez(self._folder / "vectors.npz", keys=keys, vectors=vectors)
        self._embedder.close()

    def _embed(self, kind: str, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [hashlib.sha256(f"{self.space.model}\n{kind}\n{text}".encode()).hexdigest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if missing:
            ask = self._embedder.embed_queries if kind == "query" else self._embedder.embed_passages
            self._known |= dict(zip(missing, ask(list(missing.values())), strict=True))
        return np.stack([self._known[key] for key in keys])


def _remembering(folder: Path) -> Any:
    make = registry.EMBEDDERS["local"]
    return lambda settings: Remembering(make(settings), folder)


def read(folder: Path, name: str) -> DataSet:
    """Return a data set with its paragraphs joined to documents."""
    return _marked(folder / name) if name == "chunkeval" else _joined(folder / name)


def _joined(folder: Path) -> DataSet:
    """Join paragraphs of an article; where an article has but one, those of neighbours."""
    dataset, places = DataSet("plain"), {}
    rows = list(_lines(folder / "corpus.jsonl"))
    titles = {row["title"] for row in rows}
    by_title = len(titles) * 2 <= len(rows)
    texts: dict[str, list[str]] = {}
    for number, row in enumerate(rows):
        document_id = row["title"].replace("/", "_") if by_title else f"part-{number // PARAGRAPHS}"
        parts = texts.setdefault(document_id, [])
        places[row["_id"]] = (document_id, sum(len(part) + 2 for part in parts))
        # A byte-order mark that begins a text is none of its characters once it is read.
        parts.append(row["text"].replace("\ufeff", " "))
    dataset.documents = {name: (name if by_title else "", "\n\n".join(parts)) for name, parts in texts.items()}
    questions = {row["_id"]: row["text"] for row in _lines(folder / "queries.jsonl")}
    for row in _lines(folder / "answers.jsonl"):
        document_id, start = places[row["corpus_id"]]
        alike = tuple((start + a["start"], start + a["start"] + len(a["text"])) for a in row["answers"])
        dataset.questions.append(Question(questions[row["query_id"]], document_id, (alike,)))
    return dataset


def _marked(folder: Path) -> DataSet:
    """Read files whose questions are each answered in one or several places."""
    dataset = DataSet("markdown")
    dataset.documents = {name: ("", (folder / "files" / name).read_text("utf-8")) for name in FILES}
    questions = {row["_id"]: row["text"] for row in _lines(folder / "queries.jsonl")}
    for row in _lines(folder / "answers.jsonl"):
        answers = tuple(((place["start"], place["end"]),) for place in row["references"])
        document_id = row["references"][0]["file"]
        if document_id in FILES:
            dataset.questions.append(Question(questions[row["query_id"]], document_id, answers))
    return dataset


def _documents(name: str, asked: int | None) -> int | None:
    return asked or (60 if name == "cmrc2018" else None)


def _mean(rows: Sequence[Measure]) -> Measure:
    return Measure(
        sum(row.chunks for row in rows),
        *(
            statistics.fmean(getattr(row, name) for row in rows)
            for name in ("mean_characters", "recall", "gain", "tokens")
        ),
        sum(row.seconds for row in rows),
    )


def _line(way: dict[str, Any], name: str, row: Measure) -> str:
    told = " ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in way.values())
    cells = f"{row.chunks} | {row.mean_characters:.0f} | {row.recall:.3f} | {row.gain:.3f} | {row.tokens:.0f}"
    return f"| {told} | {name} | {cells} | {row.seconds:.0f} |"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


if __name__ == "__main__":
    main()
