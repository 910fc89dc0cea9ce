"""Measure search quality over HTTP with default settings: nDCG@10 and recall@100 of the ways that need no other model.

    python benchmarks/quality.py --all --folder ~/quality
    python benchmarks/quality.py scifact cranfield
    python benchmarks/quality.py scifact --only keyword dense hybrid --url http://127.0.0.1:8000 --key $ADMIN

Each data set is a folder with corpus.jsonl, queries.jsonl and qrels.tsv. A document's title is joined to its text. A
document ranks where its best passage ranks. `--folder` keeps the server's data, so that another run embeds nothing;
without it, or on another server's `--url`, the collections are removed at the end.

Every column is one member of the search body beside the question, with everything else as it is by default. Rerankers
look at the first 30 passages, as they do by default, so that recall@100 is that of the hybrid search before them.
`parent_child` is the hybrid search of the same documents in a collection with that chunking, which finds children and
gives each parent once. Where fewer than one text in twenty is longer than a child, it changes nothing and is not
measured.
"""

import argparse
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from quality_data import DataSet, keep_collection
from serving import serve

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
ALL = (
    "scifact",
    "cranfield",
    "medline",
    "xquad_en",
    "xquad_zh",
    "xquad_enq_zhp",
    "nfcorpus_prep",
    "cmrc2018",
    "rgb_zh",
    "hotpotqa_100",
    "musique_100",
)
DEPTH = 100
RERANKED = 30
QUESTIONS = 200
CLIENTS = 2
FEW_LONG_TEXTS = 0.05
LEGS = ("keyword", "dense")
PATIENCE = {"search_timeout_seconds": "120", "rerank_timeout_seconds": "120"}


@dataclass(frozen=True)
class Way:
    """One column: what its search says beside the question, and how its collection cuts documents."""

    search: Mapping[str, Any]
    collection: Mapping[str, Any] | None = None

    @property
    def is_reranked(self) -> bool:
        """Return whether only the first passages are looked at, so that the depth says nothing."""
        return "rerank" in self.search


WAYS: Mapping[str, Way] = {
    "keyword": Way({"mode": "keyword"}),
    "dense": Way({"mode": "dense"}),
    "hybrid": Way({}),
    "lexical": Way({"rerank": {"model": "lexical"}}),
    "embedding": Way({"rerank": {"model": "embedding"}}),
    "MMR": Way({"diversity": {}}),
    "parent_child": Way({"expand": {"parent": True}}, {"chunking": {"strategy": "parent_child"}}),
}


@dataclass(frozen=True)
class Cell:
    """Means over a data set's questions; a way that says nothing of the depth has no recall."""

    gain: float
    recall: float | None

    def __str__(self) -> str:
        return f"{self.gain:.3f}" if self.recall is None else f"{self.gain:.3f} / {self.recall:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="DATASET")
    parser.add_argument("--all", action="store_true", help=f"these: {' '.join(ALL)}")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS), help="columns; all by default")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="at most so many of each set, evenly spread")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--folder", type=Path, help="keep the server's data here for another run")
    parser.add_argument("--url", help="a running server instead of one of our own")
    parser.add_argument("--key", default="", help="its admin key")
    options = parser.parse_args()
    names = ALL if options.all else options.datasets
    if not names:
        parser.error("name a data set, or say --all")
    begin = time.perf_counter()
    print(f"| data set | documents | questions | {' | '.join(options.only)} |")
    print("|---" * (3 + len(options.only)) + "|")
    rows: list[dict[str, Cell]] = []
    with _client(options) as client:
        for name in names:
            data = DataSet.read(options.data / name, options.questions)
            row = _measured(client, data, options.only, keep=options.folder is not None)
            rows.append(row)
            cells = " | ".join(str(row.get(way, "as hybrid")) for way in options.only)
            print(f"| {name} | {len(data.texts)} | {len(data.grades)} | {cells} |", flush=True)
    for line in _summary(rows, options.only):
        print(line)
    print(f"\nnDCG@10 / recall@100, {(time.perf_counter() - begin) / 60:.0f} minutes")


@contextmanager
def _client(options: argparse.Namespace) -> Iterator[httpx.Client]:
    if options.url is None:
        # A busy machine is to be slower, not worse.
        with serve(options.folder, **PATIENCE) as served, served.client() as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {options.key}"}
    with httpx.Client(base_url=options.url, headers=headers, timeout=600) as client:
        yield client


def _measured(client: httpx.Client, data: DataSet, names: Sequence[str], *, keep: bool) -> dict[str, Cell]:
    row: dict[str, Cell] = {}
    collections: dict[str, str] = {}
    for name in names:
        way = WAYS[name]
        if way.collection is not None and data.longer_than_a_child() < FEW_LONG_TEXTS:
            continue
        suffix = "" if way.collection is None else f"-{name.replace('_', '-')}"
        if suffix not in collections:
            collections[suffix] = keep_collection(client, data, suffix, way.collection or {})
        row[name] = _measure(client, collections[suffix], data, way)
    for collection in () if keep else collections.values():
        client.delete(f"/v1/collections/{collection}").raise_for_status()
    return row


def _measure(client: httpx.Client, collection: str, data: DataSet, way: Way) -> Cell:
    ids = data.document_ids()

    def ask(query: str) -> list[str]:
        body = {"query": data.queries[query], "top_k": RERANKED if way.is_reranked else DEPTH, **way.search}
        answer = client.post(f"/v1/collections/{collection}/search", json=body).raise_for_status().json()
        if answer["degraded"]:
            raise SystemExit(f"{collection}: {query}: {answer['warnings']}")
        return list(dict.fromkeys(ids[hit["document_id"]] for hit in answer["data"]))

    with ThreadPoolExecutor(CLIENTS) as pool:
        rankings = list(zip(pool.map(ask, data.grades), data.grades.values(), strict=True))
    gain = _mean([normalised_gain(ranking[:10], grades) for ranking, grades in rankings])
    return Cell(gain, None if way.is_reranked else _mean([recall(ranking, grades) for ranking, grades in rankings]))


def _summary(rows: Sequence[Mapping[str, Cell]], names: Sequence[str]) -> Iterator[str]:
    """Yield the means, and the lowest differences to the better leg; what was not measured is as hybrid."""
    full = [{name: row.get(name) or row["hybrid"] for name in names if name in row or "hybrid" in row} for row in rows]
    shown = [name for name in names if all(name in row for row in full)]
    means = {name: f"{_mean([row[name].gain for row in full]):.3f}" for name in shown}
    yield f"| mean | | | {' | '.join(means.get(name, '') for name in names)} |"
    if set(LEGS) <= set(shown):
        better = [max(row[leg].gain for leg in LEGS) for row in full]
        lowest = {
            name: f"{min(row[name].gain - leg for row, leg in zip(full, better, strict=True)):+.3f}" for name in shown
        }
        yield f"| lowest against the better leg | | | {' | '.join(lowest.get(name, '') for name in names)} |"


def normalised_gain(ranking: Sequence[str], grades: Mapping[str, int]) -> float:
    """Return nDCG with linear gains (Järvelin and Kekäläinen 2002), as trec_eval computes it."""
    ideal = _discounted(sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:10])
    return _discounted([max(0, grades.get(document, 0)) for document in ranking]) / ideal if ideal else 0.0


def recall(ranking: Sequence[str], grades: Mapping[str, int]) -> float:
    """Return the share of the relevant documents that the ranking holds."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking)) / len(relevant) if relevant else 0.0


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
