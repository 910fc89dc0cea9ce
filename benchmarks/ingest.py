"""Measure the embedded model alone and the whole ingest over HTTP, on the same passages.

    python benchmarks/ingest.py --passages 400

Prints the passages a second of the model alone and of the ingest, on the same chunks, and the time of one query.
"""

import argparse
import gzip
import json
import statistics
import time
from datetime import datetime
from pathlib import Path

from serving import models_folder, serve

from app.inference.port import Embedder
from app.inference.registry import Embedders
from app.inference.token_counter import load_token_counter
from app.settings import load_settings

SCALE = Path(__file__).parent.parent.parent / "shared" / "data" / "scale_120k.jsonl.gz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=400)
    parser.add_argument("--tokens", type=int, default=120, help="length of a passage")
    parser.add_argument("--per-document", type=int, default=40, help="passages in one document")
    options = parser.parse_args()
    embedders = Embedders(load_settings({"FOOTNOTE_MODELS": str(models_folder())}))
    embedder = embedders.get(embedders.default_model)
    passages = passages_of(embedder, options.passages * 2, options.tokens)
    raw = raw_rate(embedder, passages[: options.passages])
    query = query_milliseconds(embedder)
    chunks, seconds = ingest(passages[options.passages :], options.per_document)
    whole, alone = len(chunks) / seconds, raw_rate(embedder, chunks)
    print(f"model alone, {options.passages} passages of {options.tokens} tokens  {raw:7.1f} passages/s")
    print(f"model alone, the chunks of the ingest           {alone:7.1f} passages/s")
    print(f"whole ingest, {len(chunks)} chunks                      {whole:7.1f} passages/s ({whole / alone:.0%})")
    print(f"one query                                       {query:7.2f} ms")


def passages_of(embedder: Embedder, count: int, tokens: int) -> list[str]:
    """Return different texts of about `tokens` tokens, cut from real ones."""
    counted = load_token_counter(embedder.token_counter)
    found: list[str] = []
    with gzip.open(SCALE, "rt", encoding="utf-8") as lines:
        for line in lines:
            words = json.loads(line)["text"].split()
            text = " ".join(words)
            if counted(text) < tokens or len(words) < tokens // 3:
                continue
            low, high = 1, len(words)
            while low < high:
                middle = (low + high + 1) // 2
                low, high = (middle, high) if counted(" ".join(words[:middle])) <= tokens else (low, middle - 1)
            found.append(" ".join(words[:low]))
            if len(found) == count:
                return found
    raise SystemExit("too few texts")


def raw_rate(embedder: Embedder, passages: list[str]) -> float:
    embedder.embed_passages(["warm up " * 20])
    begin = time.perf_counter()
    # A marker of its own makes each text new to the cache.
    embedder.embed_passages([f"{text} {begin}" for text in passages])
    return len(passages) / (time.perf_counter() - begin)


def query_milliseconds(embedder: Embedder) -> float:
    times = []
    for number in range(50):
        begin = time.perf_counter()
        embedder.embed_queries([f"how many days of parental leave in case {number}"])
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times)


def ingest(passages: list[str], per_document: int) -> tuple[list[str], float]:
    """Return the chunks' texts, and the seconds from the first job queued to the last document ready."""
    longest = max(map(len, passages))
    with serve() as served, served.client() as client:
        body = {"chunking": {"strategy": "recursive", "size": longest, "overlap": 0}}
        client.put("/v1/collections/bench", json=body).raise_for_status()
        client.post("/v1/collections/bench/search", json={"query": "warm up"}).raise_for_status()
        documents = [
            {"id": f"d{start}", "text": "\n\n".join(passages[start : start + per_document])}
            for start in range(0, len(passages), per_document)
        ]
        client.post("/v1/collections/bench/documents", json={"documents": documents}).raise_for_status()
        while True:
            counts = client.get("/v1/collections/bench/stats").json()["documents"]
            if counts.get("ready", 0) == len(documents):
                break
            if counts.get("failed", 0):
                raise SystemExit("a document failed")
            time.sleep(2)
        jobs = client.get("/v1/jobs", params={"limit": 200}).json()["data"]
        begin = min(datetime.fromisoformat(job["created_at"]) for job in jobs)
        seconds = (max(datetime.fromisoformat(job["finished_at"]) for job in jobs) - begin).total_seconds()
        texts = []
        for document in documents:
            page = client.get(f"/v1/collections/bench/documents/{document['id']}/chunks", params={"limit": 200}).json()
            texts += [chunk["text"] for chunk in page["data"]]
        return texts, seconds


if __name__ == "__main__":
    main()
