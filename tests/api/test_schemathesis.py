"""Every operation of the specification, with generated requests, in this process: no 500 and no undeclared answer."""

from collections.abc import Iterator

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, settings
from schemathesis.checks import CheckContext
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.api.openapi import openapi_document
from app.main import create_app
from app.settings import Settings

ADMIN_KEY = "schemathesis-admin-key-0123456789"
KEY = {"Authorization": f"Bearer {ADMIN_KEY}"}


def _no_bug(_context: CheckContext, response: Response, _case: schemathesis.Case) -> None:
    # 503 is an answer: nothing generates where no language model is configured.
    assert response.status_code != 500, response.text


pytestmark = pytest.mark.slow

ANSWER_SECONDS = 90
"""More than any `Prefer: wait` that an example may hold."""
CHECKS = [
    _no_bug,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
# Bytes of any kind are sent as they are.
schemathesis.serializer.alias("application/zip", "application/octet-stream")
SPECIFICATION = schemathesis.openapi.from_dict(openapi_document())
_started: dict[str, FastAPI] = {}


async def _application_under_test(scope: Scope, receive: Receive, send: Send) -> None:
    await _started["app"](scope, receive, send)


# The specification wants its application when tests are collected, before a fixture can make it.
SPECIFICATION.app = _application_under_test


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    data = tmp_path_factory.mktemp("schemathesis") / "data"
    _started["app"] = create_app(Settings(data=data, admin_key=ADMIN_KEY, embedder="hashed"))
    with TestClient(_started["app"], headers=KEY) as client:
        yield client
        schemathesis.python.asgi.shutdown_lifespans()


@pytest.fixture(autouse=True)
def _what_the_paths_name(client: TestClient) -> None:
    client.put("/v1/collections/handbook", json={})
    document = {"text": "# Leave\n\nEach parent may take 320 working days.", "format": "markdown"}
    path = "/v1/collections/handbook/documents/leave-2026"
    ready = client.put(path, json=document, headers={"Prefer": "wait=30"})
    assert ready.status_code in (200, 201), ready.text


@SPECIFICATION.parametrize()
@settings(max_examples=12, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_declared(case: schemathesis.Case) -> None:
    # Most generated names exist nowhere; these lead past the 404.
    if "/documents" in case.path or case.path.endswith(("/search", "/ask")):
        case.path_parameters["collection"] = "handbook"
    if "document_id" in case.path_parameters and case.method in ("GET", "PATCH", "POST"):
        case.path_parameters["document_id"] = "leave-2026"
    case.call_and_validate(headers=KEY, checks=CHECKS, timeout=ANSWER_SECONDS)
