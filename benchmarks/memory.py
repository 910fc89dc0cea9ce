"""Measure whether the server's memory comes back after many large documents.

    python benchmarks/memory.py                      # 500 documents of 2 MB, hashed vectors
    python benchmarks/memory.py --documents 20

Prints the resident memory of the server and its children, in megabytes: idle before, the most during the ingest, with
the collection still open, and once it was closed as idle; `private` leaves out pages of files and of shared code.
"""

import argparse
import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import httpx
from serving import Served, serve

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
SAMPLES = Path(__file__).parent.parent / "tests" / "files"
CORPORA = ("scifact", "nfcorpus_prep", "medline", "cmrc2018", "dureader_robust")
QUESTIONS = (
    "types of breast cancer",
    "部署方案",
    "network of banks",
    "who wrote the novel",
    "中国历史",
    "growth factor",
)
SAMPLE_SECONDS = 0.1
IDLE_SECONDS = 5
SETTLE_SECONDS = 15
# Enough to fill the cache of vectors (FOOTNOTE_EMBEDDING_CACHE_BYTES), which is meant to stay.
WARM_UP_DOCUMENTS = 10
MOST_WAITING = 20
MAY_GROW = 1.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--megabytes", type=float, default=2.0, help="of UTF-8, in each document")
    parser.add_argument("--embedder", default="hashed")
    parser.add_argument("--data", type=Path, help="the server's data folder, instead of a new one")
    options = parser.parse_args()
    texts = documents(int(options.megabytes * 1e6))
    with serve(options.data, embedder=options.embedder, idle_seconds=str(IDLE_SECONDS)) as served:
        client = served.client()
        put_all(client, "warm", itertools.islice(texts, WARM_UP_DOCUMENTS))
        search(client, "warm")
        before = settled(served, "before")
        with Watch(served) as watch:
            begin = time.perf_counter()
            chunks = put_all(client, "many", itertools.islice(texts, options.documents))
            seconds = time.perf_counter() - begin
            search(client, "many")
        print(f"{options.documents} documents of {options.megabytes:g} MB, {chunks} chunks, in {seconds:.0f} s")
        print(f"{'most':22}{watch.peak_megabytes:8.0f}")
        show("open, just searched", *memory(served))
        after = settled(served, "closed as idle")
        search(client, "many")
        settled(served, "searched, closed again")
        verdict = "returns" if after <= before * MAY_GROW else "does NOT return"
        print(f"memory {verdict} to within 20 % of before: {after / before:.2f} times")


def documents(size: int) -> Iterator[str]:
    """Give texts of about `size` bytes, English and Chinese mixed, no two paragraphs in the same order."""
    paragraphs = paragraphs_of_samples()
    chance = random.Random(7)
    for number in itertools.count(1):
        lines, length = [f"# Report {number}"], 0
        while length < size:
            line = f"{chance.randrange(10**6)} {chance.choice(paragraphs)}"
            lines.append(line)
            length += len(line.encode()) + 2
        yield "\n\n".join(lines)


def paragraphs_of_samples() -> list[str]:
    if SHARED.is_dir():
        rows = (
            json.loads(line) for name in CORPORA for line in (SHARED / name / "corpus.jsonl").open(encoding="utf-8")
        )
        return [" ".join(row["text"].split()) for row in rows if row["text"].strip()]
    files = (path.read_text("utf-8") for kind in ("txt", "md") for path in sorted(SAMPLES.rglob(f"*.{kind}")))
    return [" ".join(part.split()) for text in files for part in text.split("\n\n") if part.strip()]


def put_all(client: httpx.Client, collection: str, texts: Iterator[str]) -> int:
    """Put documents, a few waiting at a time, and return how many chunks they have."""
    client.put(f"/v1/collections/{collection}", json={}).raise_for_status()
    for number, text in enumerate(texts):
        url = f"/v1/collections/{collection}/documents/d{number}"
        client.put(url, json={"text": text, "format": "markdown"}).raise_for_status()
        wait_for_at_most(client, collection, MOST_WAITING)
    wait_for_at_most(client, collection, 0)
    stats = client.get(f"/v1/collections/{collection}/stats").raise_for_status().json()
    if stats["documents"]["ready"] != number + 1:
        raise SystemExit(f"not every document is ready: {stats['documents']}")
    return int(stats["chunks"])


def wait_for_at_most(client: httpx.Client, collection: str, waiting: int) -> None:
    while True:
        unfinished = 0
        for state in ("queued", "running"):
            query = {"collection": collection, "state": state, "limit": 100}
            unfinished += len(client.get("/v1/jobs", params=query).raise_for_status().json()["data"])
        if unfinished <= waiting:
            return
        time.sleep(0.5)


def search(client: httpx.Client, collection: str) -> None:
    for question in QUESTIONS * 5:
        client.post(f"/v1/collections/{collection}/search", json={"query": question}).raise_for_status()


class Watch:
    """Sample a server's resident memory until the block ends."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self.peak_megabytes = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            self.peak_megabytes = max(self.peak_megabytes, self._served.resident_megabytes())


def settled(served: Served, name: str) -> float:
    """Return the resident megabytes once idle collections were closed, and show them."""
    time.sleep(IDLE_SECONDS + SETTLE_SECONDS)
    resident, private = memory(served)
    show(name, resident, private)
    return resident


def memory(served: Served) -> tuple[float, float]:
    return served.resident_megabytes(), served.private_megabytes()


def show(name: str, resident: float, private: float) -> None:
    print(f"{name:22}{resident:8.0f} MB resident {private:8.0f} MB private", flush=True)


if __name__ == "__main__":
    main()
