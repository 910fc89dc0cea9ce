import threading
import time
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient


def test_a_process_that_runs_is_alive_and_ready(anonymous: TestClient) -> None:
    assert anonymous.get("/livez").json() == {"status": "ok"}
    ready = anonymous.get("/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert {"catalog": "ok", "worker": "ok"}.items() <= ready.json()["checks"].items()


def test_a_worker_that_stopped_is_not_ready(started: Callable[..., TestClient]) -> None:
    client = started()
    client.app.state.worker.stop()  # type: ignore[attr-defined]
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["worker"]) == (503, "stopped")


def test_a_process_whose_threads_are_all_taken_is_still_alive(
    started: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.main.THREADS", 2)
    client = started()
    release = threading.Event()
    services = client.app.state.services  # type: ignore[attr-defined]
    monkeypatch.setattr(type(services.collections), "list", lambda *_, **__: release.wait(20) and ([], None))
    blocked = [threading.Thread(target=client.get, args=("/v1/collections",)) for _ in range(4)]
    for thread in blocked:
        thread.start()
    began = time.perf_counter()
    assert client.get("/livez").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert time.perf_counter() - began < 5
    assert all(thread.is_alive() for thread in blocked)
    release.set()
    for thread in blocked:
        thread.join()
