"""Measure how fast /livez answers while a large text is ingested, and an idle server's start and memory.

python benchmarks/liveness.py --megabytes 50
"""

import argparse
import random
import threading
import time

import httpx
from serving import Served, serve

WORDS = [
    f"{a}{b}" for a in ("ba", "co", "di", "fe", "gu", "ha", "jo", "ki") for b in ("lan", "mer", "nor", "pit", "rus")
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60, help="how long to ask while the ingest runs")
    options = parser.parse_args()
    with serve() as served, served.client() as client:
        client.put("/v1/collections/live", json={}).raise_for_status()
        client.post("/v1/collections/live/search", json={"query": "warm up"}).raise_for_status()
        time.sleep(1)
        idle = served.resident_megabytes()
        print(f"start to ready {served.start_seconds:.2f} s, idle with the model loaded {idle:.0f} MB")
        text = grown_text(int(options.megabytes * 1e6)).encode()
        latencies: list[float] = []
        done = threading.Event()
        thread = threading.Thread(target=ask_until, args=(served, done, latencies))
        thread.start()
        put = client.put(
            "/v1/collections/live/documents/large/original", content=text, headers={"Content-Type": "text/plain"}
        )
        put.raise_for_status()
        stages = watch(client, put.headers["Location"], options.seconds)
        done.set()
        thread.join()
        client.delete(put.headers["Location"])
    latencies.sort()
    p50, p99 = (latencies[int(len(latencies) * share)] * 1000 for share in (0.5, 0.99))
    print(f"stages seen: {' > '.join(stages)}")
    print(f"/livez: {len(latencies)} answers, p50 {p50:.1f} ms, p99 {p99:.1f} ms, worst {latencies[-1] * 1000:.1f} ms")


def grown_text(size: int) -> str:
    chosen = random.Random(1)
    paragraphs: list[str] = []
    total = 0
    while total < size:
        paragraph = " ".join(chosen.choices(WORDS, k=120)) + ".\n\n"
        paragraphs.append(paragraph)
        total += len(paragraph)
    return "".join(paragraphs)


def ask_until(served: Served, done: threading.Event, latencies: list[float]) -> None:
    with httpx.Client(base_url=served.url, timeout=30) as client:
        while not done.is_set():
            begin = time.perf_counter()
            client.get("/livez").raise_for_status()
            latencies.append(time.perf_counter() - begin)
            done.wait(0.01)


def watch(client: httpx.Client, job: str, seconds: float) -> list[str]:
    stages: list[str] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = client.get(job).json()
        if answer["stage"] and answer["stage"] not in stages:
            stages.append(answer["stage"])
        if answer["state"] not in ("queued", "running"):
            if answer["error"]:
                raise SystemExit(answer["error"])
            break
        time.sleep(0.2)
    return stages


if __name__ == "__main__":
    main()
