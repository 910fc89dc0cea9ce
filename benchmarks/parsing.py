"""Measure how fast files are read, and what reading a book of 500 pages costs the server.

    python benchmarks/parsing.py            # each loader over the shared files of its kind
    python benchmarks/parsing.py --serve    # 500 pages into a server that answers searches meanwhile

Prints seconds of processor time for loading and cleaning, and pages and megabytes a second. With `--serve`: the memory
of the server and its children above what it is when idle, and how long searches took during the ingest.
"""

import argparse
import json
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx
import pypdfium2 as pdfium
from serving import Served, serve

from app.domain import ChunkingOptions, NormalisationOptions
from app.errors import FootnoteError
from app.inference.port import TokenCounterSpec
from app.ingestion.cleaning import clean
from app.ingestion.port import LoadLimits, PrepareRequest
from app.ingestion.prepare import load

FILES = Path(__file__).parent.parent.parent / "shared" / "files"
TEXT_PDFS = ("freeculture", "failure-after-repair", "testPDF_protected", "tracemonkey", "naacl06-shinyama", "Math_en_0")
LIMITS = LoadLimits(
    max_pages=5000,
    max_characters=100_000_000,
    max_chunks=200_000,
    parse_timeout_seconds=600,
    parse_memory_bytes=4_000_000_000,
)
SAMPLE_SECONDS = 0.05
QUESTIONS = ("who owns the right to copy", "types of breast cancer", "trace compilation of loops", "network of banks")


@dataclass(frozen=True)
class Measured:
    """What files of one kind cost in all; seconds are of processor time."""

    files: int = 0
    pages: int = 0
    megabytes: float = 0.0
    load_seconds: float = 0.0
    clean_seconds: float = 0.0

    def and_another(self, pages: int, size: int, load_seconds: float, clean_seconds: float) -> "Measured":
        return Measured(
            self.files + 1,
            self.pages + pages,
            self.megabytes + size / 1e6,
            self.load_seconds + load_seconds,
            self.clean_seconds + clean_seconds,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true", help="measure a server that is given one long PDF")
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--embedder", default="local", help="`hashed` measures without the model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="footnote-parsing-") as folder:
        book = Path(folder) / "book.pdf"
        write_book(book, options.pages)
        if options.serve:
            measure_server(book, options.embedder)
        else:
            measure_loaders(book)


def write_book(path: Path, pages: int) -> None:
    """Write a PDF of pages that have text, from real ones, again from the first where they are too few."""
    book = pdfium.PdfDocument.new()
    sources = [pdfium.PdfDocument(FILES / "pdf" / f"{name}.pdf") for name in TEXT_PDFS]
    with_text = [
        (source, [index for index in range(len(source)) if source[index].get_textpage().count_chars() > 50])
        for source in sources
    ]
    while len(book) < pages:
        for source, indexes in with_text:
            book.import_pages(source, indexes[: pages - len(book)] or None)
            if len(book) >= pages:
                break
    book.save(path)


def measure_loaders(book: Path) -> None:
    kinds: dict[str, Measured] = defaultdict(Measured)
    for path, password in [*shared_files(), (book, None)]:
        request = request_for(path, password)
        begin = time.process_time()
        try:
            extraction = load(request)
        except FootnoteError:
            continue
        loaded = time.process_time()
        clean(extraction, NormalisationOptions())
        seconds = (loaded - begin, time.process_time() - loaded)
        by_ocr = "ocr" in extraction.details
        kind = f"{len(extraction.pages)} pages" if path == book else extraction.source_type + " by OCR" * by_ocr
        kinds[kind] = kinds[kind].and_another(len(extraction.pages), path.stat().st_size, *seconds)
    print(f"{'kind':16} {'files':>5} {'pages':>6} {'MB':>7} {'load s':>7} {'clean s':>7} {'pages/s':>8} {'MB/s':>7}")
    for kind, cost in kinds.items():
        seconds_in_all = cost.load_seconds + cost.clean_seconds
        rate = f"{cost.pages / seconds_in_all:8.0f}" if cost.pages else " " * 8
        print(
            f"{kind:16} {cost.files:5} {cost.pages:6} {cost.megabytes:7.1f} {cost.load_seconds:7.2f} "
            f"{cost.clean_seconds:7.2f} {rate} {cost.megabytes / seconds_in_all:7.1f}"
        )


def shared_files() -> Iterator[tuple[Path, str | None]]:
    for line in (FILES / "index.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        yield FILES / row["path"], row["password"]


def request_for(path: Path, password: str | None) -> PrepareRequest:
    return PrepareRequest(
        path=path,
        declared=None,
        filename=path.name,
        password=password,
        title=None,
        chunking=ChunkingOptions(),
        token_counter=TokenCounterSpec("estimate"),
        window_tokens=512,
        limits=LIMITS,
    )


class Watch:
    """Sample a server's memory and search it, until the block ends."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._done = threading.Event()
        self._threads = [threading.Thread(target=target) for target in (self._sample, self._search)]
        self.peak_megabytes = 0.0
        self.latencies: list[float] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            self.peak_megabytes = max(self.peak_megabytes, self._served.resident_megabytes())

    def _search(self) -> None:
        with self._served.client() as client:
            while not self._done.wait(SAMPLE_SECONDS):
                for question in QUESTIONS:
                    begin = time.perf_counter()
                    search(client, question)
                    self.latencies.append(time.perf_counter() - begin)


def search(client: httpx.Client, question: str) -> None:
    client.post("/v1/collections/books/search", json={"query": question, "top_k": 5}).raise_for_status()


def measure_server(book: Path, embedder: str) -> None:
    with serve(embedder=embedder) as served, served.client() as client:
        client.put("/v1/collections/books", json={}).raise_for_status()
        client.put(
            "/v1/collections/books/documents/first",
            json={"text": "Banks form a network."},
            headers={"Prefer": "wait=30"},
        ).raise_for_status()
        search(client, QUESTIONS[0])
        time.sleep(20)  # The parser of the first document ends when it has been idle for a while.
        idle = served.resident_megabytes()
        begin = time.perf_counter()
        with Watch(served) as watch:
            put = client.put("/v1/collections/books/documents/book/original", content=book.read_bytes())
            put.raise_for_status()
            job = finished(client, put.headers["Location"])
            seconds = time.perf_counter() - begin
        report = client.get("/v1/collections/books/documents/book").json()
    watch.latencies.sort()
    p50, p99 = (watch.latencies[int(len(watch.latencies) * share)] * 1000 for share in (0.5, 0.99))
    print(f"{report['extraction']['pages']} pages, {report['extraction']['characters']} characters, {seconds:.1f} s")
    print("stages: " + ", ".join(f"{stage['name']} {stage['ms'] / 1000:.2f} s" for stage in job["stages"]))
    print(f"memory: {idle:.0f} MB idle, {watch.peak_megabytes:.0f} MB at most, {watch.peak_megabytes - idle:+.0f} MB")
    print(f"search meanwhile: {len(watch.latencies)} answers, p50 {p50:.1f} ms, p99 {p99:.1f} ms")


def finished(client: httpx.Client, job: str) -> dict[str, object]:
    while True:
        answer: dict[str, object] = client.get(job).json()
        if answer["state"] not in ("queued", "running"):
            if answer["error"]:
                raise SystemExit(answer["error"])
            return answer
        time.sleep(0.2)


if __name__ == "__main__":
    main()
