"""The README's walk works as printed."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


def walk() -> str:
    """Return the shell lines that the README marks as its walk."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- walk: .*? -->\n```bash\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    return found.group(1)


@pytest.mark.model
def test_the_walk_from_zero_to_a_cited_answer(make_server: Callable[..., Any], model_folder: Path) -> None:
    server = make_server(embedder="local", models=str(model_folder))
    (server.data / "admin.key").write_text("journeys-admin-key-0123456789")
    script = (
        walk().replace("http://127.0.0.1:8000", server.url).replace("data/admin.key", str(server.data / "admin.key"))
    )
    # Each answer on a line of its own, and any HTTP error ends the script.
    script = script.replace("curl -sS", "curl -sS --fail-with-body -w '\\n'")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    collection, put, file, found, answer = (json.loads(line) for line in done.stdout.splitlines() if line)
    assert collection["name"] == "handbook"
    assert (put["state"], file["state"]) == ("ready", "ready")
    assert "320 working days" in found["data"][0]["text"]
    assert answer["answered"] is True
    citation = answer["citations"][0]
    assert "十五天" in citation["quote"]
    with server.client() as client:
        text = client.get(
            f"/v1/collections/handbook/documents/{citation['document_id']}/text",
            params={"start": citation["start"], "end": citation["end"]},
        ).text
    assert text == citation["quote"]
