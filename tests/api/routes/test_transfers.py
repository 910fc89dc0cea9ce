"""Export and import over HTTP: what comes back is what went out, and nothing else comes in."""

import hashlib
import io
import json
import os
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

READY = {"Prefer": "wait=30"}
MODES = ("dense", "keyword", "hybrid")


def fill(client: TestClient, name: str) -> None:
    settings = {"title": "Title", "description": "About", "chunking": {"size": 60}, "defaults": {"top_k": 4}}
    made = client.put(f"/v1/collections/{name}", json=settings | {"quotas": {"documents": 100}})
    assert made.status_code == 201, made.text
    for number in range(8):
        text = "\n\n".join(
            f"Chapter {part} of document {number} tells of 港口 and lantern{number * part}." for part in range(5)
        )
        body = {"text": text, "title": f"T{number}", "metadata": {"number": number}}
        put = client.put(f"/v1/collections/{name}/documents/d{number}", json=body, headers=READY)
        assert put.status_code == 201, put.text
    client.put(f"/v1/collections/{name}/documents/d1", json={"text": "another version"}, headers=READY)
    client.delete(f"/v1/collections/{name}/documents/d2")


def exported(client: TestClient, name: str) -> bytes:
    answer = client.get(f"/v1/collections/{name}/export")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}.zip"'
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    return answer.content


def sent(client: TestClient, name: str, content: bytes, **headers: str) -> Any:
    return client.post(f"/v1/collections/{name}/import", content=content, headers=headers)


def answers(client: TestClient, name: str, modes: tuple[str, ...] = MODES) -> list[Any]:
    found = []
    for mode in modes:
        for query in ("chapter 3 of document 5", "lantern12", "港口", "another version"):
            answer = client.post(f"/v1/collections/{name}/search", json={"query": query, "mode": mode})
            assert answer.status_code == 200, answer.text
            found.append([{**hit, "collection": ""} for hit in answer.json()["data"]])
    return found


def documents(client: TestClient, name: str) -> list[Any]:
    page = client.get(f"/v1/collections/{name}/documents", params={"limit": 200}).json()["data"]
    return [{**document, "collection": ""} for document in page]


def unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


def forged(content: bytes, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> bytes:
    """Return a bundle whose manifest is right for whatever `change` makes of its files."""
    files = unpacked(content)
    manifest = json.loads(files.pop("manifest.json"))
    before = dict(files)
    change(files, manifest)
    for name in files.keys() | before.keys():
        if name in files and files[name] != before.get(name):
            digest = hashlib.sha256(files[name]).hexdigest()
            manifest["files"][name] = {"sha256": digest, "bytes": len(files[name])}
        elif name not in files:
            manifest["files"].pop(name, None)
    return packed(files | {"manifest.json": json.dumps(manifest).encode()})


def test_what_is_imported_answers_as_what_was_exported(
    admin: TestClient, collection: str, started: Callable[..., TestClient]
) -> None:
    admin.delete(f"/v1/collections/{collection}")
    fill(admin, collection)
    # Keyword statistics count what was deleted until the index is built anew, as it is where it is imported.
    assert admin.post(f"/v1/collections/{collection}/rebuild", headers=READY).status_code == 200
    elsewhere = started()
    made = sent(elsewhere, "copy", exported(admin, collection))
    assert made.status_code == 201, made.text
    before, after = admin.get(f"/v1/collections/{collection}").json(), made.json()
    kept = ("title", "description", "chunking", "defaults", "embedding", "quotas")
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert after["name"] == "copy"
    assert documents(elsewhere, "copy") == documents(admin, collection)
    assert answers(elsewhere, "copy") == answers(admin, collection)
    for path in ("d5/original", "d5/text", "d5/chunks", "d1/versions"):
        theirs = elsewhere.get(f"/v1/collections/copy/documents/{path}")
        assert theirs.status_code == 200, theirs.text
        assert theirs.content == admin.get(f"/v1/collections/{collection}/documents/{path}").content
    verified = elsewhere.post("/v1/collections/copy/verify", headers=READY).json()
    assert (verified.get("result") or verified)["clean"] is True
    again = elsewhere.put("/v1/collections/copy/documents/d1", json={"text": "another version"}, headers=READY)
    assert (again.status_code, again.json()["outcome"]) == (200, "unchanged")
    assert elsewhere.put("/v1/collections/copy/documents/new", json={"text": "x y"}, headers=READY).status_code == 201
    assert sent(elsewhere, "twice", exported(elsewhere, "copy")).status_code == 201


def test_a_service_without_its_model_finds_by_keywords_and_refuses_vectors(
    admin: TestClient, collection: str, started: Callable[..., TestClient], model_server: Any
) -> None:
    source = started(embedder="openai_compatible", embedding_base_url=model_server.url, embedding_model="m")
    fill(source, "c")
    assert source.post("/v1/collections/c/rebuild", headers=READY).status_code == 200
    copy = f"{collection}-copy"
    content, expected = exported(source, "c"), answers(source, "c", ("keyword",))
    asked = len(model_server.sent)
    made = sent(admin, copy, content)
    assert (made.status_code, made.json()["embedding"]) == (201, {"model": "m"})
    assert answers(admin, copy, ("keyword",)) == expected
    for mode in ("dense", "hybrid"):
        refused = admin.post(f"/v1/collections/{copy}/search", json={"query": "x", "mode": mode})
        assert (refused.status_code, refused.json()["code"]) == (409, "embedding_model_mismatch")
    assert len(model_server.sent) == asked, "no model was asked"


def test_an_export_holds_no_key_no_job_and_nothing_deleted(
    admin: TestClient, collection: str, key_for: Callable[..., TestClient], put: Callable[..., Any]
) -> None:
    secret = key_for("owner", collection).headers["Authorization"].removeprefix("Bearer ")
    put(collection, "gone", "the word xylograph is gone")
    put(collection, "kept", "the word stays")
    admin.delete(f"/v1/collections/{collection}/documents/gone")
    files = unpacked(exported(admin, collection))
    manifest = json.loads(files["manifest.json"])
    assert set(files) == {"manifest.json", *manifest["files"]}
    assert {name: hashlib.sha256(files[name]).hexdigest() for name in manifest["files"]} == {
        name: entry["sha256"] for name, entry in manifest["files"].items()
    }
    assert manifest["content"]["counts"]["documents"]["ready"] == 1
    for data in files.values():
        assert secret.encode() not in data
        assert b"xylograph" not in data


def test_who_may_export_and_who_may_import(
    admin: TestClient, collection: str, put: Callable[..., Any], key_for: Callable[..., TestClient]
) -> None:
    put(collection, "d", "words")
    assert key_for("owner", collection).get(f"/v1/collections/{collection}/export").status_code == 200
    for role in ("search", "ask", "ingest"):
        assert key_for(role, collection).get(f"/v1/collections/{collection}/export").status_code == 403
    owner, content = key_for("owner", collection), exported(admin, collection)
    assert sent(owner, collection, content).status_code == 403
    assert sent(owner, "some-new-name", content).status_code == 404
    taken = sent(admin, collection, content)
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    assert sent(admin, "No Slug", content).status_code == 422


def test_an_import_that_is_sent_twice_is_done_once(
    admin: TestClient, collection: str, put: Callable[..., Any], started: Callable[..., TestClient]
) -> None:
    put(collection, "d", "words")
    content, elsewhere = exported(admin, collection), started()
    first = sent(elsewhere, "copy", content, **{"Idempotency-Key": "once"})
    assert first.status_code == 201
    second = sent(elsewhere, "copy", content, **{"Idempotency-Key": "once"})
    assert (second.status_code, second.headers["Idempotent-Replayed"]) == (201, "true")
    another = sent(elsewhere, "copy", content, **{"Idempotency-Key": "another"})
    assert (another.status_code, another.json()["code"]) == (409, "name_taken")


def _no_manifest(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name != "manifest.json"}


def _flip(files: dict[str, bytes]) -> dict[str, bytes]:
    damaged = bytearray(files["collection.db"])
    damaged[5000] ^= 0xFF
    return files | {"collection.db": bytes(damaged)}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda files: {}, "unusable_archive"),
        (_no_manifest, "unusable_archive"),
        (lambda files: files | {"../../evil": b"x"}, "unusable_archive"),
        (lambda files: files | {"/etc/passwd": b"x"}, "unusable_archive"),
        (_flip, "damaged_archive"),
        (lambda files: {name: data for name, data in files.items() if name != "collection.db"}, "damaged_archive"),
        (lambda files: {name: data for name, data in files.items() if "originals" not in name}, "damaged_archive"),
        (lambda files: files | {"manifest.json": b"{"}, "damaged_archive"),
        (lambda files: files | {"manifest.json": b"[" * 100_000}, "damaged_archive"),
        (lambda files: files | {"manifest.json": b"[]"}, "unusable_archive"),
        (lambda files: files | {"manifest.json": b'{"format": 99}'}, "unsupported_archive"),
    ],
)
def test_what_is_not_as_an_export_is_refused_and_nothing_is_made(
    admin: TestClient, collection: str, put: Callable[..., Any], change: Any, code: str
) -> None:
    put(collection, "d", "some words")
    refused = sent(admin, f"{collection}-copy", packed(change(unpacked(exported(admin, collection)))))
    assert (refused.status_code, refused.json()["code"]) == (422, code), refused.text
    assert_nothing_made(admin, f"{collection}-copy")


def _name(name: str) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    def change(files: dict[str, bytes], _: dict[str, Any]) -> None:
        files[name] = b"x"

    return change


def _foreign_original(files: dict[str, bytes], _: dict[str, Any]) -> None:
    files[f"originals/{hashlib.sha256(b'x').hexdigest()}"] = b"x"


def _other_original(files: dict[str, bytes], _: dict[str, Any]) -> None:
    (name,) = (name for name in files if name.startswith("originals/"))
    files[name] = b"x"


def _other_counts(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["content"]["counts"]["chunks"] += 1


def _other_kind(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["kind"] = "data_folder"


def _bad_settings(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["content"]["collection"]["settings"]["defaults"] = {"top_k": "many"}


def _missing_elsewhere(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["content"]["missing_originals"] = ["../../../catalog.db"]


def _bomb(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["files"]["collection.db"]["bytes"] = 10**15


@pytest.mark.parametrize(
    "change",
    [
        _name("../evil"),
        _name("originals/../evil"),
        _name("originals/" + "0" * 64),
        _foreign_original,
        _other_original,
        _other_counts,
        _other_kind,
        _bad_settings,
        _missing_elsewhere,
        _bomb,
    ],
)
def test_a_manifest_that_fits_makes_nothing_foreign_welcome(
    admin: TestClient, collection: str, put: Callable[..., Any], change: Any
) -> None:
    put(collection, "d", "some words")
    refused = sent(admin, f"{collection}-copy", forged(exported(admin, collection), change))
    assert refused.status_code == 422, refused.text
    assert refused.json()["code"] in ("unusable_archive", "damaged_archive")
    assert_nothing_made(admin, f"{collection}-copy")


def test_a_document_of_an_archive_reaches_no_file_but_an_original(
    admin: TestClient, collection: str, put: Callable[..., Any], tmp_path: Path
) -> None:
    put(collection, "d", "some words")
    outside: Path = admin.app.state.services.settings.data / "outside"  # type: ignore[attr-defined]
    outside.write_bytes(b"a secret of the service")
    os.utime(outside, (0, 0))

    def change(files: dict[str, bytes], _: dict[str, Any]) -> None:
        database = tmp_path / "changed.db"
        database.write_bytes(files["collection.db"])
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("UPDATE documents SET content_hash = '../../../outside'")
            connection.commit()
        files["collection.db"] = database.read_bytes()

    refused = sent(admin, f"{collection}-copy", forged(exported(admin, collection), change))
    assert (refused.status_code, refused.json()["code"]) == (422, "damaged_archive")
    assert_nothing_made(admin, f"{collection}-copy")
    assert outside.exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip" * 1000, b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_zip_is_refused(admin: TestClient, collection: str, content: bytes) -> None:
    refused = sent(admin, f"{collection}-copy", content)
    assert (refused.status_code, refused.json()["code"]) == (422, "damaged_archive"), refused.text
    assert_nothing_made(admin, f"{collection}-copy")


@pytest.mark.parametrize("cut", [0.3, 0.9, 0.999])
def test_a_part_of_an_export_is_refused(
    admin: TestClient, collection: str, put: Callable[..., Any], cut: float
) -> None:
    put(collection, "d", "some words")
    content = exported(admin, collection)
    assert sent(admin, f"{collection}-copy", content[: int(len(content) * cut)]).status_code == 422


def test_a_zip_bomb_is_refused_before_it_is_unpacked(
    started: Callable[..., TestClient], admin: TestClient, collection: str, put: Callable[..., Any]
) -> None:
    put(collection, "d", "some words")
    content = forged(
        exported(admin, collection), lambda files, _: files.update({"originals/" + "0" * 64: b"\0" * 30_000_000})
    )
    elsewhere = started(max_upload_bytes=200_000)
    assert len(content) < 200_000
    refused = sent(elsewhere, "copy", content)
    assert (refused.status_code, refused.json()["code"]) == (422, "unusable_archive")
    assert "unpacks to" in refused.json()["detail"]
    assert sent(elsewhere, "copy", b"\0" * 200_001).status_code == 413


def test_a_directory_that_claims_too_much_is_not_read(admin: TestClient, collection: str) -> None:
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65_535, 65_535, 0xFFFF_FFFF, 0, 0)
    refused = sent(admin, f"{collection}-copy", b"x" * 1000 + end)
    assert (refused.status_code, refused.json()["code"]) == (422, "damaged_archive")


def assert_nothing_made(client: TestClient, name: str) -> None:
    assert client.get(f"/v1/collections/{name}").status_code == 404
    services = client.app.state.services  # type: ignore[attr-defined]
    data = services.settings.data
    assert [path.name for path in (data / "collections").iterdir() if path.name.startswith(".")] == []
    assert list(services.ingestion.spool.iterdir()) == []
