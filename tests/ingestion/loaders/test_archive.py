import io
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import DamagedDocument, DocumentLimitExceeded, PasswordRequired
from app.ingestion.loaders import archive
from app.ingestion.loaders.archive import open_archive, parse_xml
from app.ingestion.port import LoadLimits

LIMITS = LoadLimits(
    max_pages=10,
    max_characters=1_000_000,
    max_chunks=1_000,
    parse_timeout_seconds=60,
    parse_memory_bytes=1_000_000,
)


def packed(**parts: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as container:
        for name, text in parts.items():
            container.writestr(name, text)
    return file.getvalue()


def test_parts_are_found_in_other_letters_and_with_backslashes() -> None:
    with open_archive(packed(**{"XL\\Workbook.xml": "<a/>"}), LIMITS) as found:
        assert found.has("xl/workbook.xml")
        assert found.read("/xl/workbook.xml") == b"<a/>"
        assert found.tree("xl/workbook.xml").tag == "a"


def test_a_part_that_is_not_there_is_none() -> None:
    with open_archive(packed(a="x"), LIMITS) as found:
        assert found.read("b") is found.tree("b") is None
        with found.stream("b") as stream:
            assert stream is None


def test_what_all_parts_inflate_to_is_within_one_limit() -> None:
    with open_archive(packed(a=" " * 60_000, b=" " * 60_000), LIMITS) as found:
        found.read("a")
        with pytest.raises(DocumentLimitExceeded, match="unpacks") as caught:
            found.read("b")
    assert "FOOTNOTE_PARSE_MEMORY_BYTES" in (caught.value.hint or "")


def test_what_passes_through_piece_by_piece_may_be_more_but_not_without_end() -> None:
    with open_archive(packed(a=" " * 700_000), LIMITS) as found:
        with found.stream("a") as stream:
            assert len(stream.read(500)) == 500
            assert len(stream.read()) == 699_500
        with found.stream("a") as stream, pytest.raises(DocumentLimitExceeded):
            stream.read()


def test_more_entries_than_any_document_has_are_over_the_limit(monkeypatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 2)

    with open_archive(packed(a="", b=""), LIMITS):
        pass
    with (
        pytest.raises(DocumentLimitExceeded, match="more than 2 files"),
        open_archive(packed(a="", b="", c=""), LIMITS),
    ):
        pass


def test_a_damaged_container_and_a_damaged_part_are_damage(tmp_path: Path) -> None:
    whole = packed(a="text " * 1000)
    file = tmp_path / "cut.zip"
    file.write_bytes(whole[:50])

    with pytest.raises(DamagedDocument), open_archive(file, LIMITS):
        pass
    broken = bytearray(whole)
    broken[35:45] = bytes(10)
    with open_archive(bytes(broken), LIMITS) as found:
        with pytest.raises(DamagedDocument):
            found.read("a")
        with found.stream("a") as stream, pytest.raises(DamagedDocument):
            stream.read()


def test_an_encrypted_part_asks_for_a_password() -> None:
    data = bytearray(packed(a="text"))
    for place in (6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1

    with open_archive(bytes(data), LIMITS) as found, pytest.raises(PasswordRequired):
        found.read("a")


def test_entities_and_outside_files_are_never_resolved(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("leaked")
    markup = f'<!DOCTYPE a [<!ENTITY x "inside"><!ENTITY y SYSTEM "{secret.as_uri()}">]><a>seen&x;&y;</a>'

    assert "".join(parse_xml(markup.encode()).itertext(tag="a")) == "seen"


@pytest.mark.parametrize("markup", ["<a>" * 300 + "</a>" * 300, "<a>" + "x" * 11_000_000 + "</a>"])
def test_xml_beyond_all_measure_is_over_the_limit(markup: str) -> None:
    with pytest.raises(DocumentLimitExceeded, match="nested too deeply or expands"):
        parse_xml(markup.encode())


def test_broken_xml_is_damage() -> None:
    with pytest.raises(DamagedDocument, match="no well-formed XML"):
        parse_xml(b"<a><b></a>")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of address space holds on Linux")
def test_xml_that_needs_more_memory_than_there_is_is_told_as_that() -> None:
    code = """
import resource
from app.ingestion.loaders.archive import parse_xml
data = b"<a>" + b"<b/>" * 5_000_000 + b"</a>"
resource.setrlimit(resource.RLIMIT_AS, (300_000_000, 300_000_000))
try:
    parse_xml(data)
except MemoryError:
    print("out of memory")
"""

    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)

    assert done.stdout == "out of memory\n"


def test_limits_are_those_of_the_request() -> None:
    with open_archive(packed(a=" " * 200_000), replace(LIMITS, parse_memory_bytes=10_000_000)) as found:
        assert len(found.read("a") or b"") == 200_000
