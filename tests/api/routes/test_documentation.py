import re

from starlette.testclient import TestClient

from app.api.openapi import openapi_document


def test_the_specification_is_served_as_it_is_exported(admin: TestClient) -> None:
    assert admin.get("/openapi.json").json() == openapi_document()


def test_the_page_asks_no_other_server(admin: TestClient) -> None:
    answer = admin.get("/docs")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert not re.search(r"https?://|//[a-z]+\.", answer.text)
    assert re.findall(r"fetch\((.*?)\)", answer.text) == ["`${location.origin}/openapi.json`"]
