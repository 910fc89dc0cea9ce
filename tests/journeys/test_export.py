"""A collection goes from one server to another, by HTTP and by the command line, and answers there as before."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

FOOTNOTE = Path(sys.executable).with_name("footnote")
CHUNKS = int(os.environ.get("EXPORTED_CHUNKS", "400"))
CHUNKS_IN_A_DOCUMENT = 50
QUERIES = 20
READY_SECONDS = 900.0
WORDS = [
    first + last
    for first in ("har", "lan", "vel", "gra", "cop", "mea", "orch", "thun")
    for last in ("bour", "tern", "vet", "nite", "per", "dow", "id", "der")
]


def text(number: int) -> str:
    chosen = Random(number)
    sentences = (" ".join(chosen.choices(WORDS, k=9)).capitalize() + "." for _ in range(CHUNKS_IN_A_DOCUMENT))
    return "\n\n".join(sentences)


def fill(client: httpx.Client) -> None:
    assert client.put("/v1/collections/c", json={"chunking": {"size": 100}}).status_code == 201
    numbers = range(CHUNKS // CHUNKS_IN_A_DOCUMENT)
    batch = [{"id": f"d{number}", "text": text(number), "metadata": {"number": number}} for number in numbers]
    assert client.post("/v1/collections/c/documents", json={"documents": batch}).status_code == 202
    deadline = time.monotonic() + READY_SECONDS
    while client.get("/v1/collections/c/stats").json()["documents"]["ready"] < len(numbers):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def answers(client: httpx.Client, name: str) -> list[Any]:
    found = []
    for number in range(QUERIES):
        query = " ".join(Random(-number).choices(WORDS, k=4))
        answer = client.post(f"/v1/collections/{name}/search", json={"query": query, "top_k": 10})
        assert answer.status_code == 200, answer.text
        hits = answer.json()["data"]
        assert hits
        found.append([{**hit, "collection": ""} for hit in hits])
    return found


def etags(client: httpx.Client, name: str) -> dict[str, str]:
    page = client.get(f"/v1/collections/{name}/documents", params={"limit": 200}).json()["data"]
    return {document["id"]: document["etag"] for document in page}


def run(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
    return subprocess.run(
        [str(FOOTNOTE), *words],
        env=environment | {"FOOTNOTE_DATA": str(data), "FOOTNOTE_EMBEDDER": "hashed"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def told(label: str, began: float) -> None:
    print(f"{label}: {time.monotonic() - began:.2f} s")  # noqa: T201 - shown with -s, for the figures of a large run


def test_a_collection_answers_elsewhere_as_it_did(make_server: Callable[..., Any], tmp_path: Path) -> None:
    here, there = make_server("here"), make_server("there")
    with here.client(timeout=300) as source, there.client(timeout=300) as target:
        fill(source)
        began = time.monotonic()
        exported = source.get("/v1/collections/c/export")
        assert exported.status_code == 200
        told(f"export of {CHUNKS} chunks, {len(exported.content):,} bytes", began)
        began = time.monotonic()
        imported = target.post("/v1/collections/copy/import", content=exported.content)
        assert imported.status_code == 201, imported.text
        told("import", began)
        assert etags(target, "copy") == etags(source, "c")
        assert answers(target, "copy") == answers(source, "c")


@pytest.mark.slow
def test_the_command_line_carries_a_collection_and_the_whole_folder_beside_a_running_server(
    make_server: Callable[..., Any], tmp_path: Path
) -> None:
    here = make_server("here")
    with here.client() as source:
        fill(source)
        expected = answers(source, "c")
    zipped, backup = tmp_path / "c.zip", tmp_path / "backup.zip"
    assert run(here.data, "export", "c", "-o", str(zipped)).returncode == 0
    assert run(here.data, "backup", str(backup)).returncode == 0
    for file in (zipped, backup):
        assert file.stat().st_mode & 0o777 == 0o600
    refused = run(here.data, "restore", str(backup), "--force")
    assert (refused.returncode, "data_folder_in_use" in refused.stderr) == (2, True)
    assert run(here.data, "export", "nothing", "-o", str(tmp_path / "no.zip")).returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir() if "zip" in path.name) == ["backup.zip", "c.zip"]
    imported = run(tmp_path / "imported", "import", str(zipped), "copy")
    assert imported.returncode == 0, imported.stderr
    restored = run(tmp_path / "restored", "restore", str(backup))
    assert restored.returncode == 0, restored.stderr
    for name, collection in (("imported", "copy"), ("restored", "c")):
        server = make_server(name)
        with server.client() as client:
            assert answers(client, collection) == expected
        server.stop()
