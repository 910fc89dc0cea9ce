"""Measure how long a document takes to be accepted while earlier ones wait for a slow embedding server.

python benchmarks/accepting.py --documents 200 --kilobytes 100 --embedder-seconds 2
"""

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from serving import serve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--kilobytes", type=int, default=100)
    parser.add_argument("--embedder-seconds", type=float, default=2)
    options = parser.parse_args()
    latencies: list[float] = []
    with (
        slow_embedder(options.embedder_seconds) as url,
        serve(embedder="openai_compatible", embedding_base_url=url, embedding_model="slow") as served,
        served.client() as client,
    ):
        client.put("/v1/collections/slow", json={}).raise_for_status()
        for number in range(options.documents):
            text = f"Document {number} has some words here. " * (options.kilobytes * 1000 // 35)
            begin = time.perf_counter()
            answer = client.put(f"/v1/collections/slow/documents/d{number}", json={"text": text})
            latencies.append(time.perf_counter() - begin)
            if answer.status_code != 202:
                raise SystemExit(answer.text)
    latencies.sort()
    p50, p99 = (latencies[int(len(latencies) * share)] * 1000 for share in (0.5, 0.99))
    print(f"{len(latencies)} accepted: p50 {p50:.1f} ms, p99 {p99:.1f} ms, worst {latencies[-1] * 1000:.1f} ms")


@contextmanager
def slow_embedder(seconds: float) -> Iterator[str]:
    """Serve embeddings of four numbers, each answer after `seconds`; give the base URL."""

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(seconds)
            data = [
                {"object": "embedding", "index": index, "embedding": [1.0, index % 7, 0.5, 1.0]}
                for index in range(len(asked["input"]))
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            body = json.dumps({"object": "list", "model": "slow", "data": data, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_values: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
