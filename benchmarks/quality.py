"""Measure search quality over HTTP with default settings: nDCG@10 and recall@100 of each mode.

    python benchmarks/quality.py scifact cranfield
    python benchmarks/quality.py scifact --url http://127.0.0.1:8000 --key $ADMIN

Each data set is a folder with corpus.jsonl, queries.jsonl and qrels.tsv. A document's title is joined to its text. A
document ranks where its best chunk ranks.
"""

import argparse
import csv
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from serving import serve

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
MODES = ("keyword", "dense", "hybrid")
DEPTH = 100
BATCH = 500


@dataclass(frozen=True)
class DataSet:
    """Texts and questions by id, and each question's grades by document id."""

    name: str
    texts: dict[str, str]
    queries: dict[str, str]
    grades: dict[str, dict[str, int]]

    @classmethod
    def read(cls, folder: Path) -> "DataSet":
        texts = {
            row["_id"]: f"{row.get('title') or ''} {row['text']}".strip() for row in _lines(folder / "corpus.jsonl")
        }
        queries = {row["_id"]: row["text"] for row in _lines(folder / "queries.jsonl")}
        grades: dict[str, dict[str, int]] = {}
        with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as file:
            for query, document, grade in list(csv.reader(file, delimiter="\t"))[1:]:
                grades.setdefault(query, {})[document] = int(grade)
        return cls(folder.name, texts, queries, grades)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", metavar="DATASET")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--url", help="a running server instead of one of our own")
    parser.add_argument("--key", default="", help="its admin key")
    options = parser.parse_args()
    print("| data set | documents | questions | " + " | ".join(f"{mode} nDCG@10 / recall@100" for mode in MODES) + " |")
    print("|---" * (3 + len(MODES)) + "|")
    with _client(options.url, options.key) as client:
        for name in options.datasets:
            data = DataSet.read(options.data / name)
            collection = f"quality-{name.replace('_', '-')}-{int(time.time())}"
            ids = _put(client, collection, data)
            cells = [_measure(client, collection, data, ids, mode) for mode in MODES]
            client.delete(f"/v1/collections/{collection}").raise_for_status()
            asked = len(data.grades)
            print(f"| {name} | {len(data.texts)} | {asked} | {' | '.join(cells)} |", flush=True)


@contextmanager
def _client(url: str | None, key: str) -> Iterator[httpx.Client]:
    if url is None:
        with serve() as served, served.client() as client:
            yield client
        return
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=600) as client:
        yield client


def _put(client: httpx.Client, collection: str, data: DataSet) -> dict[str, str]:
    """Ingest every text, wait until all are ready, and return the data set's id of each document's id."""
    client.put(f"/v1/collections/{collection}", json={}).raise_for_status()
    ids = {f"d{number}": original for number, original in enumerate(data.texts) if data.texts[original]}
    waiting = list(ids)
    for start in range(0, len(waiting), BATCH):
        batch = [{"id": each, "text": data.texts[ids[each]]} for each in waiting[start : start + BATCH]]
        answer = client.post(f"/v1/collections/{collection}/documents", json={"documents": batch})
        answer.raise_for_status()
        errors = [result["error"] for result in answer.json()["results"] if result["error"]]
        if errors:
            raise SystemExit(f"{collection}: {errors[0]}")
    while True:
        counts = client.get(f"/v1/collections/{collection}/stats").raise_for_status().json()["documents"]
        if counts.get("failed"):
            raise SystemExit(f"{collection}: {counts['failed']} documents failed")
        if counts.get("ready") == len(ids):
            return ids
        time.sleep(2)


def _measure(client: httpx.Client, collection: str, data: DataSet, ids: dict[str, str], mode: str) -> str:
    gains, recalls = [], []
    for query, grades in data.grades.items():
        body = {"query": data.queries[query], "mode": mode, "top_k": DEPTH}
        answer = client.post(f"/v1/collections/{collection}/search", json=body)
        answer.raise_for_status()
        ranking = list(dict.fromkeys(ids[hit["document_id"]] for hit in answer.json()["data"]))
        gains.append(normalised_gain(ranking[:10], grades))
        relevant = {document for document, grade in grades.items() if grade > 0}
        recalls.append(len(relevant.intersection(ranking)) / len(relevant) if relevant else 0.0)
    return f"{sum(gains) / len(gains):.4f} / {sum(recalls) / len(recalls):.3f}"


def normalised_gain(ranking: list[str], grades: dict[str, int]) -> float:
    """Return nDCG with linear gains (Järvelin and Kekäläinen 2002), as trec_eval computes it."""
    ideal = _discounted(sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:10])
    return _discounted([max(0, grades.get(document, 0)) for document in ranking]) / ideal if ideal else 0.0


def _discounted(gains: list[int]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


if __name__ == "__main__":
    main()
