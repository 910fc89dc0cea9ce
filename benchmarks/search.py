"""Measure search at any size: in process, over HTTP, beside other engines, and beside what memory allows.

    python benchmarks/search.py --chunks 100000                                # in process, one to 32 clients
    python benchmarks/search.py --chunks 100000 --http --ingest grown          # and over HTTP, with documents coming in
    python benchmarks/search.py --chunks 100000 --http --workers 2             # at a server of two processes only
    python benchmarks/search.py --chunks 100000 --rivals lancedb chroma txtai  # and others (extra `bench`)
    python benchmarks/search.py --chunks 1000000 --http --folder FOLDER --queries 200

Real texts and vectors grown from real ones are taken in once and kept in `--folder`. Real questions are asked with
their vectors given, so that no figure holds the embedding of the query. Every engine runs in a process of its own, one
after the other, and is asked the same. `recall@10` compares the dense leg with exact search by brute force; `exact` is
the share of the questions whose ten are the true ten in their order. A filter below 1 % names documents, others compare
a field. Over HTTP the clients run on the same cores as the server.
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from grown_collection import questions
from memory_bandwidth import bandwidth
from search_engines import COLLECTION, selection
from search_load import COLUMNS
from search_measure import Figures, Workload, build, in_own_process, measure, sizes, truth
from search_rivals import ENGINES, missing_rivals
from search_served import copied, searches, searches_beside_ingest, served, warm

from app.start import restart_in_large_pages

DIMENSIONS = 384
PLACES = {
    "store": f"collections/{COLLECTION}/collection.db*",
    "keyword index": f"collections/{COLLECTION}/index/keyword/**/*",
    "dense index": f"collections/{COLLECTION}/index/dense*",
}


def main() -> None:
    options = parsed()
    documents = -(-options.chunks // options.chunks_per_document)
    selections = (None, *(selection(percent, documents) for percent in options.filter))
    workload = Workload(
        options.chunks,
        options.chunks_per_document,
        options.queries,
        options.top_k,
        selections,
        tuple(options.clients),
    )
    folder = options.folder or Path(tempfile.gettempdir()) / "footnote-benchmark"
    footnote = data_folder(folder, workload, "footnote")
    print(f"{options.chunks} chunks in {documents} documents, {options.queries} questions, top_k {options.top_k}")
    nearest = in_own_process(truth, workload)
    for name in ("footnote", *options.rivals):
        data = data_folder(folder, workload, name)
        if options.fresh:
            shutil.rmtree(data, ignore_errors=True)
        built = in_own_process(build, name, data, workload)
        figures = in_own_process(measure, name, data, workload, nearest)
        print(f"\n{figures.name}: {figures.how}")
        if built is not None:
            print(f"built in {built.seconds:.1f} s, peak memory {built.peak_megabytes:.0f} MB")
        report_place(figures, data)
        report(figures, workload)
    report_limit(options.chunks, sizes(footnote, PLACES)["dense index"])
    for workers in options.workers if options.http else ():
        report_http(footnote, workload, options.http_clients, workers)
    if options.ingest:
        report_ingest(footnote, workload, options)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--chunks-per-document", type=int, default=10)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--filter", type=float, nargs="*", default=[50, 1, 0.01], metavar="PERCENT")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 2, 8, 32], help="in process")
    parser.add_argument("--rivals", nargs="*", default=[], choices=[name for name in ENGINES if name != "footnote"])
    parser.add_argument("--http", action="store_true", help="also ask the real server")
    parser.add_argument("--http-clients", type=int, nargs="*", default=[1, 2, 8, 32])
    processors = os.cpu_count() or 1
    parser.add_argument(
        "--workers", type=int, nargs="*", default=sorted({1, processors}), help="server processes, one server each"
    )
    parser.add_argument("--ingest", nargs="*", default=[], choices=["grown", "model"], help="vectors of what comes in")
    parser.add_argument("--ingest-seconds", type=float, default=30)
    parser.add_argument("--folder", type=Path, help="where collections are kept between runs")
    parser.add_argument("--fresh", action="store_true", help="take everything in anew")
    options = parser.parse_args()
    if options.rivals and (missing := missing_rivals(options.rivals)):
        parser.error(f"{', '.join(missing)} not installed; the rivals need `pip install 'footnote[bench]'`")
    return options


def data_folder(folder: Path, workload: Workload, name: str) -> Path:
    """Return where an engine's data is kept."""
    size = f"{workload.chunks}x{workload.chunks_per_document}"
    return folder / (size if name == "footnote" else f"{size}-{name}")


def report_place(figures: Figures, data: Path) -> None:
    """Print what the open engine takes."""
    print(f"open {figures.open_seconds * 1000:.0f} ms, with the first search {figures.first_seconds * 1000:.0f} ms")
    print(
        f"memory {figures.resident_megabytes:.0f} MB resident after all, {figures.peak_megabytes:.0f} MB peak, "
        f"{figures.start_megabytes:.0f} MB before it was opened"
    )
    places = {"whole folder": "**/*"} | (PLACES if figures.name == "Footnote" else {})
    print("on disk " + ", ".join(f"{name} {size:.1f} MB" for name, size in sizes(data, places).items()))


def report(figures: Figures, workload: Workload) -> None:
    """Print the latencies of one client by filter and mode, and those of more clients."""
    print(f"{'filter':8} {'mode':8} {COLUMNS} {'recall@10':>10} {'exact':>6}")
    for (mode, place), latencies in figures.latencies.items():
        chosen = workload.selections[place]
        recall = f" {figures.recall[place]:10.4f} {figures.exact[place]:6.3f}" if mode == "dense" else ""
        print(f"{chosen.name if chosen else 'none':8} {mode:8} {latencies}{recall}")
    print(f"{'clients':8} {'mode':8} {COLUMNS}")
    first = next(iter(figures.latencies))[0]
    for clients, latencies in figures.by_clients.items():
        print(f"{clients:<8} {first:8} {latencies}")


def report_limit(chunks: int, index_megabytes: float) -> None:
    """Print how long reading what a scan of the vectors must read takes at least."""
    speeds = [in_own_process(bandwidth, cores) for cores in (1, 2)]
    print(f"\nmemory is read at {speeds[0] / 1e9:.1f} GB/s by one core, {speeds[1] / 1e9:.1f} GB/s by two: at least")
    amounts = {
        "float32 vectors, exact": chunks * DIMENSIONS * 4 / 1e6,
        "8-bit vectors": chunks * DIMENSIONS / 1e6,
        "the dense index's files": index_megabytes,
    }
    for name, megabytes in amounts.items():
        one, two = (megabytes * 1e9 / speed for speed in speeds)
        print(f"{name:24} {megabytes:9.1f} MB {one:8.2f} ms {two:8.2f} ms")


def report_http(data: Path, workload: Workload, clients: list[int], workers: int) -> None:
    """Print the latencies of hybrid searches over HTTP."""
    texts = questions(workload.queries)
    with served(data, workload.queries, "grown", workers) as server:
        print(f"\nover HTTP, server processes: {workers}, ready after {server.start_seconds:.1f} s")
        warm(server, texts, workers)
        print(f"{'clients':8} {'mode':8} {COLUMNS}")
        for number in clients:
            requests = max(len(texts), 50 * number)
            print(f"{number:<8} {'hybrid':8} {searches(server, texts, number, workload.top_k, requests)}")
        print(f"memory {server.resident_megabytes():.0f} MB resident, all processes of the server")


def report_ingest(footnote: Path, workload: Workload, options: argparse.Namespace) -> None:
    """Print what the most clients get of the most processes while documents come in, in a copy of the collection."""
    texts = questions(workload.queries)
    clients = max(options.http_clients)
    for passages in options.ingest:
        copy = copied(footnote)
        try:
            with served(copy, workload.queries, passages, max(options.workers)) as server:
                warm(server, texts, max(options.workers))
                beside = searches_beside_ingest(server, texts, clients, workload.top_k, options.ingest_seconds)
                vectors = "given" if passages == "grown" else "made by the embedded model, in another process"
                print(f"\nbeside documents coming in, their vectors {vectors}: {beside.chunks_per_second:.0f} chunks/s")
                print(f"{clients:<8} {'hybrid':8} {beside.searches}")
                print(f"memory {server.resident_megabytes():.0f} MB resident, all processes of the server")
        finally:
            shutil.rmtree(copy, ignore_errors=True)


if __name__ == "__main__":
    # As the command line of the service does; every engine is measured so.
    restart_in_large_pages()
    main()
