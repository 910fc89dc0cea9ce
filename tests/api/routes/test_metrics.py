import re
from collections.abc import Callable
from typing import Any

from starlette.testclient import TestClient

LINE = re.compile(r'# TYPE [a-z0-9_]+ (counter|gauge)|[a-zA-Z_][a-zA-Z0-9_]*(\{[a-z]+="[a-z]+"\})? [0-9.]+')


def test_metrics_count_what_was_done(admin: TestClient, collection: str, put: Callable[..., Any]) -> None:
    put(collection, "d", "some words")
    answer = admin.get("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert int(values["footnote_documents_ingested_total"]) >= 1
    assert int(values['footnote_jobs{state="succeeded"}']) >= 1
    assert values['footnote_jobs{state="failed"}'].isdigit()
    assert int(values["process_resident_memory_bytes"]) > 10_000_000


def test_only_the_admin_key_reads_metrics(collection: str, key_for: Callable[..., TestClient]) -> None:
    refused = key_for("owner", collection).get("/metrics")
    assert (refused.status_code, refused.json()["needed_role"]) == (403, "admin")
