"""Office files through the front door: found by search, with the slide or the sheet and rows that they stand on."""

import io
import zipfile
from pathlib import Path

import msoffcrypto.format.ooxml
import pytest
from starlette.testclient import TestClient

FILES = Path(__file__).parents[1] / "files"
WAIT = {"Prefer": "wait=60"}
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def workbook(rows: str) -> bytes:
    """Pack one sheet; style 1 shows a date."""
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f'<Relationships {RELATIONS}><Relationship Id="a" Type="{KINDS}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{KINDS}"><sheets><sheet name="Ledger" r:id="b"/></sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships {RELATIONS}><Relationship Id="b" Type="{KINDS}/worksheet" '
        f'Target="s.xml"/><Relationship Id="c" Type="{KINDS}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet {MAIN}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        "xl/s.xml": f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return packed.getvalue()


def ledger(rows: int) -> bytes:
    head = '<row><c t="str"><v>date</v></c><c t="str"><v>amount</v></c></row>'
    body = (f'<row><c s="1"><v>{45287 - place}</v></c><c><v>{27 + place}</v></c></row>' for place in range(rows))
    return workbook(head + "".join(body))


def put(client: TestClient, collection: str, data: bytes, filename: str, **headers: str) -> dict:
    answer = client.put(
        f"/v1/collections/{collection}/documents/file/original",
        content=data,
        params={"filename": filename},
        headers=WAIT | {"Content-Type": "application/octet-stream"} | headers,
    )
    return answer.json() | {"status_code": answer.status_code}


def find(client: TestClient, collection: str, query: str) -> dict:
    answer = client.post(f"/v1/collections/{collection}/search", json={"query": query, "mode": "keyword", "top_k": 1})
    return answer.json()["data"][0]


def test_a_row_of_a_workbook_is_found_with_its_head_its_sheet_and_its_rows(admin: TestClient, collection: str) -> None:
    put_ = put(admin, collection, ledger(500), "ledger.xlsx")
    hit = find(admin, collection, "2023-12-27")

    assert put_["extraction"]["records"] == 500
    assert "date: 2023-12-27; amount: 27" in hit["text"].split("\n")
    sheet, rows = hit["heading_path"]
    assert (sheet, rows.split("-")[0]) == ("Ledger", "rows 2")
    last = int(rows.split("-")[1])
    assert hit["text"].endswith(f"amount: {27 + last - 2}")
    assert all(line.startswith("date: ") for line in hit["text"].split("\n")[2:])


def test_so_many_rows_a_chunk_name_their_sheet_and_rows(admin: TestClient, collection: str) -> None:
    path = f"/v1/collections/{collection}"
    chunking = {"strategy": "records", "records": 5}
    assert admin.patch(path, json={"chunking": chunking}).status_code == 200
    put(admin, collection, ledger(12), "ledger.xlsx")

    chunks = admin.get(f"{path}/documents/file/chunks").json()["data"]

    assert [chunk["heading_path"] for chunk in chunks] == [
        ["Ledger", "rows 2-6"],
        ["Ledger", "rows 7-11"],
        ["Ledger", "rows 12-13"],
    ]


def test_a_chunk_of_a_presentation_carries_its_slide(admin: TestClient, collection: str) -> None:
    put_ = put(admin, collection, (FILES / "pptx/powerpoint_sample.pptx").read_bytes(), "talk.pptx")
    hit = find(admin, collection, "A rectangle shape with this text inside")

    assert put_["extraction"]["pages"] == 3
    assert (hit["page_start"], hit["page_end"], hit["heading_path"]) == (2, 2, ["Second slide title"])


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        ("xlsx/xlsx_09_section_label_header.xlsx", "Title: A Brief History of Time"),
        ("pptx/powerpoint_sample.pptx", "A rectangle shape with this text inside"),
    ],
)
def test_an_encrypted_file_opens_with_its_password(admin: TestClient, collection: str, sample: str, found: str) -> None:
    encrypted = io.BytesIO()
    plain = io.BytesIO((FILES / sample).read_bytes())
    msoffcrypto.format.ooxml.OOXMLFile(plain).encrypt("open sesame", encrypted)
    data, filename = encrypted.getvalue(), Path(sample).name

    without = put(admin, collection, data, filename)
    wrong = put(admin, collection, data, filename, **{"X-Document-Password": "no"})
    right = put(admin, collection, data, filename, **{"X-Document-Password": "open sesame"})

    assert (without["status_code"], without["code"]) == (422, "password_required")
    assert (wrong["status_code"], wrong["code"]) == (422, "password_wrong")
    assert right["status_code"] == 201, right
    assert found in find(admin, collection, found)["text"]


def test_an_old_binary_file_is_415_that_says_what_to_convert_it_to(admin: TestClient, collection: str) -> None:
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + "PowerPoint Document".encode("utf-16-le")
    put_ = put(admin, collection, old, "talk.ppt")

    assert (put_["status_code"], put_["code"]) == (415, "unsupported_media_type")
    assert ".pptx" in put_["hint"]


def test_a_renamed_workbook_is_read_as_what_it_is_with_a_warning(admin: TestClient, collection: str) -> None:
    put_ = put(admin, collection, ledger(3), "report.docx")

    assert put_["extraction"]["parser"] == "xlsx"
    assert [warning["code"] for warning in put_["warnings"]] == ["content_type_mismatch"]
