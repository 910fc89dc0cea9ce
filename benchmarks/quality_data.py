"""Data sets with judged questions: read from their folder, and put over HTTP into collections that may be kept."""

import csv
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

BATCH = 500
CHILD_CHARACTERS = 512
"""Default size of a child of `parent_child`."""


@dataclass(frozen=True)
class DataSet:
    """Texts and questions by id, and each question's grades by document id."""

    name: str
    texts: dict[str, str]
    queries: dict[str, str]
    grades: dict[str, dict[str, int]]

    @classmethod
    def read(cls, folder: Path, questions: int) -> "DataSet":
        """Return a folder's data set with at most so many of its judged questions, evenly spread over all."""
        texts = {
            row["_id"]: f"{row.get('title') or ''} {row['text']}".strip() for row in _lines(folder / "corpus.jsonl")
        }
        queries = {row["_id"]: row["text"] for row in _lines(folder / "queries.jsonl")}
        grades: dict[str, dict[str, int]] = {}
        with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as file:
            for query, document, grade in list(csv.reader(file, delimiter="\t"))[1:]:
                grades.setdefault(query, {})[document] = int(grade)
        judged = list(grades)
        step = max(1.0, len(judged) / questions)
        asked = [judged[int(place * step)] for place in range(min(questions, len(judged)))]
        return cls(folder.name, texts, queries, {query: grades[query] for query in asked})

    def document_ids(self) -> dict[str, str]:
        """Return the data set's own id of each document by the id that it gets in a collection."""
        return {f"d{number}": original for number, original in enumerate(self.texts) if self.texts[original]}

    def longer_than_a_child(self) -> float:
        """Return the share of the texts that `parent_child` cuts into more than one child."""
        return sum(len(text) > CHILD_CHARACTERS for text in self.texts.values()) / len(self.texts)


def keep_collection(client: httpx.Client, data: DataSet, suffix: str, options: Mapping[str, Any]) -> str:
    """Return the collection of a data set's texts, all ready; what an earlier run has put is indexed anew, not put."""
    name = f"quality-{data.name.replace('_', '-')}{suffix}"
    ids = data.document_ids()
    if client.get(f"/v1/collections/{name}").status_code == httpx.codes.NOT_FOUND:
        client.put(f"/v1/collections/{name}", json=options).raise_for_status()
    if _ready(client, name) == len(ids):
        _rebuild(client, name)
        return name
    _put(client, name, data, ids)
    while _ready(client, name) < len(ids):
        time.sleep(2)
    return name


def _rebuild(client: httpx.Client, name: str) -> None:
    """Index with the analysis of today; the texts keep their vectors."""
    job = client.post(f"/v1/collections/{name}/rebuild").raise_for_status().json()
    while job["state"] in ("queued", "running"):
        time.sleep(0.5)
        job = client.get(f"/v1/jobs/{job['id']}").raise_for_status().json()
    if job["state"] != "succeeded":
        raise SystemExit(f"{name}: {job['error']}")


def _put(client: httpx.Client, name: str, data: DataSet, ids: Mapping[str, str]) -> None:
    waiting = list(ids)
    for start in range(0, len(waiting), BATCH):
        batch = [{"id": each, "text": data.texts[ids[each]]} for each in waiting[start : start + BATCH]]
        answer = client.post(f"/v1/collections/{name}/documents", json={"documents": batch}).raise_for_status()
        errors = [result["error"] for result in answer.json()["results"] if result["error"]]
        if errors:
            raise SystemExit(f"{name}: {errors[0]}")


def _ready(client: httpx.Client, name: str) -> int:
    counts = client.get(f"/v1/collections/{name}/stats").raise_for_status().json()["documents"]
    if counts.get("failed"):
        raise SystemExit(f"{name}: {counts['failed']} documents failed")
    ready: int = counts.get("ready", 0)
    return ready


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
