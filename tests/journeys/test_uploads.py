"""Forms as odd clients send them."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

COLLECTION = "/v1/collections/forms"
BOUNDARIES = ["x", "-", "----", "'()+_,-./:=?", "a b c", "0" * 70, "b--"]


def form(boundary: str, content: bytes) -> bytes:
    """Return a form with text before and after it, white space behind its boundaries, and look-alikes inside a file."""
    line = b"--" + boundary.encode()
    parts = [
        b'Content-Disposition: form-data; name="info"\r\nContent-Type: application/json\r\n\r\n'
        b'{"ids": {"a.txt": "a"}, "metadata": {"team": "hr"}}',
        b'content-disposition:form-data;name=files;filename="a.txt"\r\nCONTENT-TYPE: text/plain\r\n\r\n' + content,
    ]
    return b"".join(line + b"\r\n" + part + b"\r\n" for part in parts) + line + b"--"


def bytewise(body: bytes) -> Iterator[bytes]:
    for place in range(len(body)):
        yield body[place : place + 1]


@pytest.mark.parametrize("gathered", [False, True])
def test_a_form_is_read_whatever_its_boundary_and_its_pieces(make_server: Callable[..., Any], gathered: bool) -> None:
    server = make_server()
    with server.client() as client:
        assert client.put(COLLECTION, json={}).status_code == 201
        for boundary in BOUNDARIES:
            text = f"words before\n--{boundary[:-1]}\n--{boundary[::-1]}.\nwords after"
            body = form(boundary, text.encode())
            headers = {"Content-Type": f'multipart/form-data; boundary="{boundary}"', "Prefer": "wait=30"}
            content = body if gathered else bytewise(body)
            answer = client.post(f"{COLLECTION}/documents/upload", content=content, headers=headers)
            assert answer.status_code == 200, (boundary, answer.text)
            assert answer.json()["results"][0]["outcome"] in ("created", "updated"), (boundary, answer.text)
            assert client.get(f"{COLLECTION}/documents/a/text").text == text


def test_a_boundary_that_is_none_is_refused(make_server: Callable[..., Any]) -> None:
    server = make_server()
    with server.client() as client:
        assert client.put(COLLECTION, json={}).status_code == 201
        for boundary in ("", '""', "y", "x" * 5000, "ä", '"un', "\\"):
            headers = httpx.Headers({"Content-Type": f"multipart/form-data; boundary={boundary}"}, encoding="utf-8")
            answer = client.post(f"{COLLECTION}/documents/upload", content=form("x", b"words"), headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_form"), (boundary, answer.text)
