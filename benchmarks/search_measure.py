"""Measure one engine in a process of its own, so that memory and start are its alone."""

import gc
import multiprocessing
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from grown_collection import GrownQueries, grown_documents, grown_passages
from numpy.typing import NDArray
from search_engines import Engine, Mode, Selection
from search_load import Latencies, in_process
from search_rivals import ENGINES

Result = TypeVar("Result")

NEAREST = 10
_WARM_UP = 20


@dataclass(frozen=True, slots=True)
class Workload:
    """What every engine is asked."""

    chunks: int
    chunks_per_document: int
    queries: int
    top_k: int
    selections: tuple[Selection | None, ...]
    clients: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """How long it took to take everything in, and the most memory that took, in megabytes."""

    seconds: float
    peak_megabytes: float


@dataclass(slots=True)
class Figures:
    """What one engine did. Memory in megabytes; recall and `exact` by the selections' places."""

    name: str
    how: str
    open_seconds: float
    first_seconds: float
    start_megabytes: float
    latencies: dict[tuple[Mode, int], Latencies] = field(default_factory=dict)
    recall: dict[int, float] = field(default_factory=dict)
    exact: dict[int, float] = field(default_factory=dict)
    by_clients: dict[int, Latencies] = field(default_factory=dict)
    resident_megabytes: float = 0.0
    peak_megabytes: float = 0.0


def in_own_process(work: Callable[..., Result], *arguments: Any) -> Result:
    """Return what the work returns in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def build(engine: str, folder: Path, workload: Workload) -> Built | None:
    """Make an engine's data unless an earlier run has, under another name until it is whole."""
    if folder.exists():
        return None
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    begin = time.perf_counter()
    ENGINES[engine]().build(making, grown_documents(workload.chunks, workload.chunks_per_document))
    seconds = time.perf_counter() - begin
    making.rename(folder)
    return Built(seconds, memory("VmHWM"))


def truth(workload: Workload) -> list[NDArray[np.int64]]:
    """Return for each selection the numbers of the ten nearest passages of each question, by brute force."""
    queries = GrownQueries(workload.queries)
    # Of two passages that lie as near but for a seventh digit, single precision may take the wrong one.
    questions = queries.embed_queries(queries.texts).astype(np.float64)
    best = [_Nearest(len(questions)) for _ in workload.selections]
    first = 0
    for vectors in grown_passages(workload.chunks):
        numbers = np.arange(first, first + len(vectors))
        scores = questions @ vectors.T
        for chosen, nearest in zip(workload.selections, best, strict=True):
            if chosen is None:
                nearest.add(scores, numbers)
            elif (admitted := chosen.admits(numbers // workload.chunks_per_document)).any():
                nearest.add(scores[:, admitted], numbers[admitted])
        first += len(vectors)
    return [nearest.numbers for nearest in best]


class _Nearest:
    """The nearest so far of each question, nearest first; -1 where there are fewer."""

    def __init__(self, questions: int) -> None:
        self.numbers = np.full((questions, NEAREST), -1, np.int64)
        self._scores = np.full((questions, NEAREST), -np.inf, np.float64)

    def add(self, scores: NDArray[np.float64], numbers: NDArray[np.int64]) -> None:
        """Take in the scores of more passages."""
        if scores.shape[1] > NEAREST:
            places = np.argpartition(-scores, NEAREST, axis=1)[:, :NEAREST]
            scores, found = np.take_along_axis(scores, places, 1), numbers[places]
        else:
            found = np.broadcast_to(numbers, scores.shape)
        both, named = np.hstack([self._scores, scores]), np.hstack([self.numbers, found])
        order = np.argsort(-both, axis=1, kind="stable")[:, :NEAREST]
        self._scores, self.numbers = np.take_along_axis(both, order, 1), np.take_along_axis(named, order, 1)


def measure(name: str, folder: Path, workload: Workload, nearest: Sequence[NDArray[np.int64]]) -> Figures:
    """Open what was built and ask everything of the workload."""
    engine = ENGINES[name]()
    queries = GrownQueries(workload.queries)
    gc.collect()
    before, begin = memory("VmRSS"), time.perf_counter()
    engine.open(folder, queries)
    opened = time.perf_counter()
    engine.search(queries.texts[0], engine.modes[0], workload.top_k, None)
    figures = Figures(engine.name, engine.how, opened - begin, time.perf_counter() - begin, before)
    for place, chosen in enumerate(workload.selections):
        for mode in engine.modes:
            figures.latencies[mode, place] = _asked(engine, queries.texts, mode, workload.top_k, chosen)
        found = [engine.search(text, "dense", NEAREST, chosen) for text in queries.texts]
        figures.recall[place], figures.exact[place] = compare(found, nearest[place])
    for clients in workload.clients if engine.threads else (1,):
        figures.by_clients[clients] = _asked(engine, queries.texts, engine.modes[0], workload.top_k, None, clients)
    figures.resident_megabytes, figures.peak_megabytes = memory("VmRSS"), memory("VmHWM")
    engine.close()
    return figures


def compare(found: Sequence[Sequence[int]], nearest: NDArray[np.int64]) -> tuple[float, float]:
    """Return recall, and the share of the questions whose whole list is the true one in its order."""
    recalls, same = [], 0
    for hits, row in zip(found, nearest.tolist(), strict=True):
        true = [number for number in row if number >= 0]
        recalls.append(len(set(hits) & set(true)) / len(true))
        same += list(hits) == true
    return float(np.mean(recalls)), same / len(found)


def _asked(
    engine: Engine, texts: Sequence[str], mode: Mode, top_k: int, chosen: Selection | None, clients: int = 1
) -> Latencies:
    for text in texts[:_WARM_UP]:
        engine.search(text, mode, top_k, chosen)
    requests = len(texts) if clients == 1 else max(len(texts), 20 * clients)
    return in_process(lambda text: engine.search(text, mode, top_k, chosen), texts, clients, requests)


def memory(name: str) -> float:
    """Return a line of this process's status in megabytes: VmRSS is resident now, VmHWM the most so far (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024 / 1e6


def sizes(folder: Path, patterns: Mapping[str, str]) -> dict[str, float]:
    """Return the megabytes on disk of the files of each pattern."""
    return {
        name: sum(file.stat().st_size for file in folder.glob(pattern) if file.is_file()) / 1e6
        for name, pattern in patterns.items()
    }
