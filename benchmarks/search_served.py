"""Measure searches over HTTP at the real server, with and without documents coming in beside them.

The server embeds through an OpenAI-compatible embedding server that this program starts: it looks the questions' grown
vectors up. Each question is asked once before, and the server remembers its vector, so that no measured search waits
for an embedding. Who searches has a key of the role `search`, whose questions the query log does not keep by default.
"""

import itertools
import json
import multiprocessing
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from grown_collection import DATA, GrownQueries, grown, grown_documents
from search_engines import COLLECTION
from search_load import Latencies, over_http
from serving import Served, models_folder, serve
from sqlalchemy import insert

from app.catalog.collections import Collection
from app.catalog.database import Database
from app.catalog.tables import collections
from app.inference.port import FINGERPRINT_TEXT
from app.inference.registry import Embedders
from app.settings import load_settings

Passages: TypeAlias = Literal["grown", "model"]
"""Where the vectors of documents that come in are from: mixed as the collection's are, or really embedded."""

_SEARCH = f"/v1/collections/{COLLECTION}/search"
_DOCUMENTS = 500
_CONNECTIONS_PER_WORKER = 4


@dataclass(frozen=True, slots=True)
class Beside:
    """A measurement with documents coming in: the searches, and how many chunks a second became searchable."""

    searches: Latencies
    chunks_per_second: float


@contextmanager
def served(data: Path, queries: int, passages: Passages, workers: int) -> Iterator[Served]:
    """Serve the grown collection with so many processes, and its embedding server in a process of its own."""
    _register(data)
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    embedding = spawn.Process(target=_serve_embeddings, args=(there, queries, passages), daemon=True)
    embedding.start()
    try:
        with serve(
            data,
            workers=str(workers),
            embedder="openai_compatible",
            embedding_base_url=f"http://127.0.0.1:{here.recv()}/v1",
            embedding_api_key="none",
            embedding_model=GrownQueries.space.model,
        ) as server:
            yield server
    finally:
        embedding.terminate()
        embedding.join()


def warm(server: Served, texts: list[str], workers: int) -> None:
    """Ask every question over several connections for each process, so that it has its vector and files in memory."""
    for _ in range(1 if workers == 1 else _CONNECTIONS_PER_WORKER * workers):
        with server.client() as client:
            for text in texts:
                client.post(_SEARCH, json={"query": text}).raise_for_status()


def searches(server: Served, texts: list[str], clients: int, top_k: int, requests: int) -> Latencies:
    """Ask hybrid searches over so many connections."""
    bodies = [{"query": text, "top_k": top_k} for text in texts]
    return over_http(server.url + _SEARCH, bodies, clients, requests, _search_key(server), lambda: False)


def searches_beside_ingest(server: Served, texts: list[str], clients: int, top_k: int, seconds: float) -> Beside:
    """Ask for so long while documents of ten chunks come in, each as soon as the one before is searchable."""
    ended, accepted = threading.Event(), [0]
    writer = threading.Thread(target=_put_until, args=(server, ended, accepted))
    key = _search_key(server)
    with server.client() as client:
        before = _chunk_count(client)
        writer.start()
        bodies = [{"query": text, "top_k": top_k} for text in texts]
        until = time.monotonic() + seconds
        latencies = over_http(server.url + _SEARCH, bodies, clients, 10**9, key, lambda: time.monotonic() > until)
        more = _chunk_count(client) - before
        ended.set()
        writer.join()
    return Beside(latencies, more / seconds)


def copied(data: Path) -> Path:
    """Return a copy of the data, for a measurement that changes it."""
    copy = data.with_name(f"{data.name}.copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(data, copy)
    return copy


def _search_key(server: Served) -> dict[str, str]:
    """Return the header of a new key that can only search, as those who search have."""
    with server.client() as client:
        asked = {"name": "benchmark", "collections": [COLLECTION], "role": "search"}
        made = client.post("/v1/keys", json=asked).raise_for_status().json()
    return {"Authorization": f"Bearer {made['secret']}"}


def _chunk_count(client: Any) -> int:
    answer = client.get(f"/v1/collections/{COLLECTION}/stats").raise_for_status().json()
    return int(answer["chunks"]["total"] if isinstance(answer["chunks"], dict) else answer["chunks"])


def _put_until(server: Served, ended: threading.Event, accepted: list[int]) -> None:
    with server.client() as client:
        for number, document in enumerate(itertools.cycle(grown_documents(_DOCUMENTS * 10, 10))):
            if ended.is_set():
                return
            # Texts that came before would find their vectors remembered.
            text = "\n\n".join(f"{number} {passage}" for passage in document.texts)
            put = client.put(
                f"/v1/collections/{COLLECTION}/documents/beside-{number}",
                json={"text": text},
                headers={"Prefer": "wait=60"},
            )
            put.raise_for_status()
            accepted[0] += 1


def _register(data: Path) -> None:
    """Enter the collection that was filled in process into the catalog, as the service would have."""
    database = Database(data / "catalog.db")
    settings = {"embedding": {"model": GrownQueries.space.model}}
    now = datetime.now(UTC)
    entry = Collection(COLLECTION, COLLECTION, None, None, settings, now, now)
    with database.write() as connection:
        connection.execute(insert(collections).prefix_with("OR IGNORE").values(**asdict(entry)))
    database.close()


def _serve_embeddings(told: Connection, queries: int, passages: Passages) -> None:
    known = GrownQueries(queries)
    vectors = dict(zip(known.texts, known.embed_queries(known.texts), strict=True))
    vectors[FINGERPRINT_TEXT] = np.array(GrownQueries.space.fingerprint, np.float32)
    mixed = itertools.cycle(grown(np.load(DATA / "e5_vectors.npz")["passages"], 10_000, seed=3))
    embedders = Embedders(load_settings({"FOOTNOTE_MODELS": str(models_folder())}))

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            if passages == "model" and texts[0] not in vectors:
                found = list(embedders.get(embedders.default_model).embed_passages(texts))
            else:
                found = [vectors[text] if text in vectors else next(mixed) for text in texts]
            data = [{"index": place, "embedding": vector.tolist()} for place, vector in enumerate(found)]
            content = json.dumps({"data": data, "model": "grown", "usage": {}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    told.send(server.server_address[1])
    server.serve_forever()
