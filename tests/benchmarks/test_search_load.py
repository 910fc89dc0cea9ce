import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    """A server that answers the status that the path ends with, in two pieces."""

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(int(self.path[1:]))
            self.send_header("content-length", "200000")
            self.end_headers()
            self.wfile.write(b"a" * 100_000)
            self.wfile.write(b"b" * 100_000)

        def log_message(self, *_: object) -> None:
            pass

    bodies: list[bytes] = []
    made = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    made.bodies = bodies  # type: ignore[attr-defined]
    made.daemon_threads = True
    # Clients leave in the middle of an answer when a measurement ends.
    made.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_every_client_in_process_waits_for_its_answer() -> None:
    from search_load import in_process

    asked: list[str] = []
    under_way, most, lock = set[int](), [0], threading.Lock()
    together = threading.Barrier(3)

    def ask(text: str) -> None:
        with lock:
            under_way.add(threading.get_ident())
            most[0] = max(most[0], len(under_way))
            asked.append(text)
        together.wait(timeout=10)
        with lock:
            under_way.discard(threading.get_ident())

    latencies = in_process(ask, ["one", "two"], clients=3, requests=12)
    assert sorted(asked) == ["one"] * 6 + ["two"] * 6
    assert most == [3]
    assert 0 < latencies.p50 <= latencies.p95 <= latencies.p99
    assert latencies.per_second > 0


def test_answers_over_http_are_counted_when_they_are_whole(server: ThreadingHTTPServer) -> None:
    from search_load import over_http

    url = f"http://127.0.0.1:{server.server_port}/200"
    latencies = over_http(url, [{"query": "one"}], clients=4, requests=20, headers={}, stop=lambda: False)
    assert len(server.bodies) >= 20  # type: ignore[attr-defined]
    assert set(server.bodies) == {b'{"query": "one"}'}  # type: ignore[attr-defined]
    assert 0 < latencies.p50 <= latencies.p99


def test_an_answer_that_is_no_result_ends_the_measurement(server: ThreadingHTTPServer) -> None:
    from search_load import over_http

    url = f"http://127.0.0.1:{server.server_port}/503"
    with pytest.raises(SystemExit, match="503"):
        over_http(url, [{}], clients=1, requests=1, headers={}, stop=lambda: False)
