"""Scans and pictures over the API, in the parsing process with its limits."""

from pathlib import Path

import pytest

SCAN = (Path(__file__).parents[1] / "files" / "pdf" / "ocr_test.pdf").read_bytes()
HEADERS = {"Content-Type": "application/pdf", "Prefer": "wait=60"}


def test_a_scan_is_ready_with_its_text_and_says_what_was_recognised(admin, collection) -> None:
    pytest.importorskip("rapidocr", reason="the extra `ocr` is not installed")
    document = f"/v1/collections/{collection}/documents/scan"
    answer = admin.put(f"{document}/original", content=SCAN, headers=HEADERS)

    assert answer.status_code == 201, answer.text
    assert answer.json()["extraction"]["parser"] == "ocr"
    assert [page["page"] for page in answer.json()["extraction"]["ocr"]["pages"]] == [1]
    assert admin.get(f"{document}/text").text.startswith("Docling bundles PDF document conversion")


def test_a_scan_that_is_not_recognised_fails_with_a_hint_and_a_report(started) -> None:
    client = started(ocr_page_seconds=0)
    client.put("/v1/collections/c", json={})
    answer = client.put("/v1/collections/c/documents/scan/original", content=SCAN, headers=HEADERS)

    assert answer.status_code == 422
    assert answer.json()["code"] == "no_extractable_text"
    assert "OCR" in answer.json()["hint"] or "ocr" in answer.json()["hint"]
    assert answer.json()["report"]["by_page"] == [{"page": 1, "characters": 0, "images": 1}]
