"""What a collection's normalisation does to its documents, seen through the door."""

from typing import Any

from starlette.testclient import TestClient

WAIT = {"Prefer": "wait=30"}
BODY = [
    "Quokkas live on an island.",
    "Wombats dig long tunnels.",
    "Numbats eat only termites.",
    "Bilbies sleep all day.",
]
WRAPPED = "The committee met in spring and agreed on a budget for the years to\ncome, which all had asked for."


def pdf(pages: list[list[str]]) -> bytes:
    """Return a PDF without a table of objects, which readers make themselves."""
    kids = " ".join(f"{10 + 2 * place} 0 R" for place in range(len(pages)))
    parts = [
        "%PDF-1.4",
        "1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj",
        f"2 0 obj<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>endobj",
        "3 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj",
    ]
    for place, lines in enumerate(pages):
        content = "BT /F 12 Tf 72 720 Td 14 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        number = 10 + 2 * place
        resources = f"/Resources<</Font<</F 3 0 R>>>>/Contents {number + 1} 0 R"
        parts.append(f"{number} 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]{resources}>>endobj")
        parts.append(f"{number + 1} 0 obj<</Length {len(content)}>>stream\n{content}\nendstream endobj")
    return "\n".join([*parts, "trailer<</Root 1 0 R>>\n%%EOF\n"]).encode("ascii")


def put(client: TestClient, collection: str, content: bytes, filename: str) -> Any:
    path = f"/v1/collections/{collection}/documents/d"
    answer = client.put(f"{path}/original", params={"filename": filename}, content=content, headers=WAIT)
    assert answer.status_code in (200, 201), answer.text
    return client.get(path).json() | {"text": client.get(f"{path}/text").text, "outcome": answer.json()["outcome"]}


def test_head_and_foot_of_a_pdf_stand_in_its_text_once_and_its_report_says_so(
    admin: TestClient, collection: str
) -> None:
    pages = [["ACME annual report", body, f"Page {number} of 4"] for number, body in enumerate(BODY, 1)]
    document = put(admin, collection, pdf(pages), "report.pdf")

    assert document["text"].count("ACME annual report") == 1
    assert document["text"].count("Page ") == 1
    assert all(body in document["text"] for body in BODY)
    assert document["extraction"]["cleaning"]["repeated_lines"] == [
        {"text": "ACME annual report", "pages": 3},
        {"text": "Page 1 of 4", "pages": 3},
    ]
    found = admin.post(f"/v1/collections/{collection}/search", json={"query": "numbats", "mode": "keyword"}).json()
    assert found["data"][0]["page_start"] <= 3 <= found["data"][0]["page_end"]

    kept = admin.patch(f"/v1/collections/{collection}", json={"normalisation": {"repeated_lines": "keep"}})
    assert kept.json()["normalisation"] == {"repeated_lines": "keep", "hyphens": "auto", "line_breaks": "auto"}
    again = put(admin, collection, pdf(pages), "report.pdf")
    assert again["outcome"] == "updated"
    assert again["text"].count("ACME annual report") == 4


def test_a_collection_may_ask_for_plain_text_without_its_line_breaks(admin: TestClient, collection: str) -> None:
    assert put(admin, collection, WRAPPED.encode(), "a.txt")["text"] == WRAPPED

    admin.patch(f"/v1/collections/{collection}", json={"normalisation": {"line_breaks": "join"}})
    assert put(admin, collection, WRAPPED.encode(), "a.txt")["text"] == WRAPPED.replace("\n", " ")
