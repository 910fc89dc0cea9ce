"""The application in this process, on a data folder of its own, with the worker running and the hashed embedder."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings

ADMIN_KEY = "api-tests-admin-key-0123456789"

_numbers = itertools.count(1)


def settings_of(**changed: Any) -> Settings:
    return Settings(**{"admin_key": ADMIN_KEY, "embedder": "hashed", **changed})


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return create_app(settings_of(data=tmp_path_factory.mktemp("api") / "data"))


@pytest.fixture(scope="session")
def admin(application: FastAPI) -> Iterator[TestClient]:
    """A client with the admin key; it starts and ends the application for the whole session."""
    with TestClient(application, headers=bearer(ADMIN_KEY)) as client:
        yield client


@pytest.fixture(scope="session")
def anonymous(application: FastAPI, admin: TestClient) -> TestClient:
    return TestClient(application)


@pytest.fixture(scope="session")
def client_of(application: FastAPI, admin: TestClient) -> Callable[[str], TestClient]:
    """Return a client with another key."""
    return lambda key: TestClient(application, headers=bearer(key))


@pytest.fixture
def collection(admin: TestClient) -> str:
    """The name of a new, empty collection."""
    name = f"c{next(_numbers)}"
    made = admin.put(f"/v1/collections/{name}", json={})
    assert made.status_code == 201, made.text
    return name


@pytest.fixture
def key_for(admin: TestClient, client_of: Callable[[str], TestClient]) -> Callable[..., TestClient]:
    """Make a key of a role for collections, and return its client."""

    def make(role: str, *collections: str, **more: Any) -> TestClient:
        body = {"name": role, "role": role, "collections": list(collections), **more}
        made = admin.post("/v1/keys", json=body)
        assert made.status_code == 201, made.text
        return client_of(made.json()["secret"])

    return make


@pytest.fixture
def put(admin: TestClient) -> Callable[..., Any]:
    """Put a text, wait until it is ready, and return the answer's JSON."""

    def put_text(collection: str, document_id: str, text: str, **members: Any) -> Any:
        answer = admin.put(
            f"/v1/collections/{collection}/documents/{document_id}",
            json={"text": text, **members},
            headers={"Prefer": "wait=30"},
        )
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    return put_text


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., TestClient]]:
    """Start another application with settings of its own, and return its admin client."""
    with ExitStack() as stack:

        def start(**changed: Any) -> TestClient:
            changed.setdefault("data", tmp_path / f"data{next(_numbers)}")
            app = create_app(settings_of(**changed))
            return stack.enter_context(TestClient(app, headers=bearer(ADMIN_KEY)))

        yield start
