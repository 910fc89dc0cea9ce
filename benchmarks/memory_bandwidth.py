"""Measure how many bytes a second one and more cores read from memory: the limit of whatever scans vectors.

python benchmarks/memory_bandwidth.py
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=512, help="how much is read; more than any cache holds")
    parser.add_argument("--cores", type=int, nargs="*", default=[1, 2])
    options = parser.parse_args()
    for cores in options.cores:
        print(f"{cores} cores {bandwidth(cores, options.megabytes) / 1e9:6.1f} GB/s")


def bandwidth(cores: int, megabytes: int = 512) -> float:
    """Return the most bytes a second that so many threads read together, each its own part."""
    parts = np.array_split(np.ones(megabytes * 1_000_000, np.uint8), cores)
    with ThreadPoolExecutor(cores) as threads:
        list(threads.map(_read, parts))
        fastest = min(_seconds(threads, parts) for _ in range(ROUNDS))
    return megabytes * 1e6 / fastest


def _seconds(threads: ThreadPoolExecutor, parts: list[NDArray[np.uint8]]) -> float:
    begin = time.perf_counter()
    list(threads.map(_read, parts))
    return time.perf_counter() - begin


def _read(part: NDArray[np.uint8]) -> int:
    # The largest of bytes is found by wide registers, so that memory and not the core is what one waits for; the GIL
    # is released meanwhile.
    return int(part.max())


if __name__ == "__main__":
    main()
