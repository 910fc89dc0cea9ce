"""Measure search in process, by the service's own path from plan to passages, with no model.

    python benchmarks/search.py --chunks 100000

Builds a collection of real texts and grown vectors (kept in `--folder` for the next run), then asks real questions by
keyword, dense and hybrid search, without a filter and with filters that let some percent of the documents through.
Prints latencies, how many of the true ten nearest the dense leg returns, opening times, memory and sizes on disk.
"""

import argparse
import gc
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from grown_collection import FIELD, GrownQueries, fill
from numpy.typing import NDArray

from app.bootstrap import build_services
from app.filters import Condition, Filter, Operator
from app.indexes.opening import OpenCollection
from app.indexes.pool import OpenCollections
from app.retrieval.plan import SearchPlan
from app.retrieval.planning import build_plan
from app.retrieval.run import Models
from app.retrieval.search import search
from app.settings import load_settings
from app.stores.port import Scope

MODES: tuple[Literal["keyword", "dense", "hybrid"], ...] = ("keyword", "dense", "hybrid")
SETTINGS = load_settings({})
Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--chunks-per-document", type=int, default=10)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--filter", type=float, nargs="*", default=[1, 50], metavar="PERCENT")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="where collections are kept between runs")
    parser.add_argument("--fresh", action="store_true", help="build the collection anew")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.gettempdir()) / "footnote-benchmark"
    data = folder / f"{options.chunks}x{options.chunks_per_document}"
    if options.fresh:
        shutil.rmtree(data, ignore_errors=True)
    build(data, options.chunks, options.chunks_per_document)
    queries = GrownQueries(options.queries)
    gc.collect()
    before, started = resident_megabytes(), time.perf_counter()
    pool = open_pool(data)
    with pool.get("c") as opened:
        search(opened, Models(queries), "c", plan_of(queries.texts[0], "hybrid", options.top_k, None))
        seconds = time.perf_counter() - started
        documents = opened.store.stats().documents["ready"]
        print(f"{options.chunks} chunks in {documents} documents, {options.queries} questions\n")
        report_place(data, seconds, resident_megabytes() - before)
        vectors = Nearest(opened)
        print("filter    mode       p50 ms   p95 ms   p99 ms   recall@10   median of stages, ms")
        for percent in (None, *options.filter):
            for mode in MODES:
                report(opened, queries, vectors, mode, percent, options.top_k)
    pool.close()


def build(data: Path, chunks: int, chunks_per_document: int) -> None:
    """Make the collection unless an earlier run has, under another name until it is whole."""
    if data.exists():
        return
    making = data.with_name(f"{data.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    pool = open_pool(making)
    pool.create("c")
    with pool.get("c") as opened:
        _, writing = timed(lambda: fill(opened, chunks, chunks_per_document))
        _, indexing = timed(opened.catch_up)
        _, rebuilding = timed(opened.rebuild)
    pool.close()
    making.rename(data)
    print(f"built: store {writing:.1f} s, indexes {indexing:.1f} s, and once more {rebuilding:.1f} s")


def open_pool(data: Path) -> OpenCollections:
    """Open collections as the service does."""
    return build_services(load_settings({"FOOTNOTE_DATA": str(data)})).opened


def plan_of(query: str, mode: Literal["keyword", "dense", "hybrid"], top_k: int, percent: float | None) -> SearchPlan:
    wanted: Filter | None = None if percent is None else Condition(FIELD, Operator.LT, percent)
    return build_plan(query, SETTINGS, mode=mode, top_k=top_k, search_filter=wanted)


class Nearest:
    """Every vector of the store, to find the true nearest by brute force."""

    def __init__(self, opened: OpenCollection) -> None:
        chunks, after = [], -1
        while batch := opened.store.all_chunks(after, 10_000):
            chunks += [(chunk.chunk_key, chunk.document_key, chunk.vector) for chunk in batch]
            after = batch[-1].chunk_key
        self.keys = np.array([key for key, _, _ in chunks])
        self.documents = np.array([document for _, document, _ in chunks])
        self.vectors = np.stack([vector for _, _, vector in chunks])

    def ten(self, query: NDArray[np.float32], scope: Scope) -> set[str]:
        """Return the ids of the ten nearest chunks in scope."""
        scores = self.vectors @ query
        if scope.document_keys is not None:
            scores[~np.isin(self.documents, scope.document_keys)] = -np.inf
        return {f"c{key}" for key in self.keys[np.argsort(-scores)[:10]]}


def report(
    opened: OpenCollection,
    queries: GrownQueries,
    nearest: Nearest,
    mode: Literal["keyword", "dense", "hybrid"],
    percent: float | None,
    top_k: int,
) -> None:
    """Print one line of the table."""
    seconds: list[float] = []
    stages: dict[str, list[float]] = {}
    found: list[set[str]] = []
    for text in queries.texts:
        plan = plan_of(text, mode, top_k, percent)
        result, taken = timed(lambda plan=plan: search(opened, Models(queries), "c", plan))
        seconds.append(taken)
        found.append({passage.chunk_id for passage in result.passages[:10]})
        for name, milliseconds in result.timings_ms.items():
            stages.setdefault(name, []).append(milliseconds)
    recall = "        "
    if mode == "dense":
        scope = opened.store.scope(plan.filter, None)
        shares = [
            len(hits & (true := nearest.ten(queries.embed_queries([text])[0], scope))) / len(true)
            for text, hits in zip(queries.texts, found, strict=True)
        ]
        recall = f"{np.mean(shares):8.4f}"
    p50, p95, p99 = np.percentile(np.array(seconds) * 1000, [50, 95, 99])
    of_stages = "  ".join(f"{name} {np.median(values):.2f}" for name, values in stages.items() if name != "total")
    name = "none" if percent is None else f"{percent:g} %"
    print(f"{name:8}  {mode:8} {p50:8.2f} {p95:8.2f} {p99:8.2f}   {recall}    {of_stages}")


def report_place(data: Path, seconds: float, megabytes: float) -> None:
    """Print what the open collection takes."""
    collection = data / "collections" / "c"
    print(f"opening and first search   {seconds * 1000:8.0f} ms")
    print(f"resident memory, added     {megabytes:8.0f} MB")
    for name in ("collection.db", "index/keyword/*", "index/dense*.npz"):
        files = list(collection.glob(name))
        print(f"{name:26} {sum(file.stat().st_size for file in files) / 1e6:8.1f} MB")
    print()


def resident_megabytes() -> float:
    """Return this process's resident memory (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return what the work returns and the seconds it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


if __name__ == "__main__":
    main()
