"""What comes inside a mail: its whole life over the API."""

from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest
from starlette.testclient import TestClient

WAIT = {"Prefer": "wait=30", "Content-Type": "message/rfc822"}


def mail(subject: str = "Offer", body: str = "The offer is attached.", **files: bytes | str) -> bytes:
    """Write a mail; a keyword names a file (`offer_txt` is offer.txt)."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Ann <ann@example.org>", "bo@example.org", subject
    message["Date"] = "Mon, 02 Jan 2023 10:00:00 +0100"
    message.set_content(body)
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        message.add_attachment(
            data, maintype="application", subtype="octet-stream", filename=".".join(name.rsplit("_", 1))
        )
    return bytes(message)


def settle(client: TestClient) -> None:
    """Follow every job to its end, and those that came of it."""
    while running := [job for job in client.get("/v1/jobs").json()["data"] if job["finished_at"] is None]:
        for job in running:
            client.get(f"/v1/jobs/{job['id']}/events")


@pytest.fixture
def documents(admin: TestClient, collection: str) -> str:
    return f"/v1/collections/{collection}/documents"


@pytest.fixture
def put_mail(admin: TestClient, documents: str) -> Callable[..., Any]:
    def put(data: bytes, document_id: str = "offer.eml", **parameters: str) -> Any:
        answer = admin.put(f"{documents}/{document_id}/original", content=data, headers=WAIT, params=parameters)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    return put


@pytest.fixture
def document(admin: TestClient, documents: str) -> Callable[[str], Any]:
    """Return a document once no job works on it; `None` where there is none."""

    def look(document_id: str) -> Any:
        settle(admin)
        answer = admin.get(f"{documents}/{document_id}")
        return None if answer.status_code == 404 else answer.json()

    return look


@pytest.fixture
def found(admin: TestClient, collection: str) -> Callable[..., list[str]]:
    def search(query: str, **members: Any) -> list[str]:
        answer = admin.post(f"/v1/collections/{collection}/search", json={"query": query, "mode": "keyword", **members})
        assert answer.status_code == 200, answer.text
        return [hit["document_id"] for hit in answer.json()["data"]]

    return search


def test_an_attachment_is_a_document_of_its_own(put_mail, document, found) -> None:
    put_mail(mail(price_csv="item,price\nbicycle,450\n"))

    parent, child = document("offer.eml"), document("offer.eml~price.csv")

    assert parent["metadata"]["attachments"] == ["offer.eml~price.csv"]
    assert parent["metadata"]["from"] == "ann@example.org"
    assert child["state"] == "ready"
    assert child["metadata"] == {"attachment_of": "offer.eml"}
    assert child["title"] == "price.csv"
    assert child["extraction"]["parser"] == "csv"
    assert found("bicycle") == ["offer.eml~price.csv"]


def test_an_attachment_has_the_metadata_and_the_expiry_that_were_given_to_its_mail(put_mail, document) -> None:
    put_mail(mail(note_txt="secret bicycle"), metadata='{"team": "hr"}', expires_at="2099-01-01T00:00:00Z")

    child = document("offer.eml~note.txt")

    assert child["metadata"] == {"team": "hr", "attachment_of": "offer.eml"}
    assert child["expires_at"].startswith("2099-01-01")


def test_a_change_of_the_mails_metadata_reaches_its_attachments(admin, documents, put_mail, document) -> None:
    put_mail(mail(note_txt="bicycle"), metadata='{"team": "hr"}')
    assert document("offer.eml~note.txt")["metadata"]["team"] == "hr"

    answer = admin.patch(f"{documents}/offer.eml", json={"metadata": {"team": "law"}}, headers={"Prefer": "wait=30"})

    assert answer.json()["metadata"]["team"] == "law"
    assert answer.json()["chunks"]["embedded"] == 0
    assert document("offer.eml~note.txt")["metadata"] == {"team": "law", "attachment_of": "offer.eml"}


def test_attachments_are_replaced_with_their_mail(put_mail, document, found) -> None:
    put_mail(mail(price_txt="bicycle 450", terms_txt="thirty days"))
    assert document("offer.eml~terms.txt")["state"] == "ready"

    put_mail(mail(price_txt="bicycle 390", map_txt="second street"))

    assert document("offer.eml")["metadata"]["attachments"] == ["offer.eml~price.txt", "offer.eml~map.txt"]
    assert document("offer.eml~price.txt")["version"] == 2
    assert document("offer.eml~map.txt")["state"] == "ready"
    assert document("offer.eml~terms.txt") is None
    assert found("thirty") == []


def test_attachments_go_with_their_mail(admin, documents, put_mail, document, found) -> None:
    inner = mail("Inner", "inner body", deep_txt="tandem")
    put_mail(mail(price_txt="bicycle", inner_eml=inner))
    assert document("offer.eml~inner.eml")["state"] == "ready"
    assert document("offer.eml~inner.eml~deep.txt")["metadata"]["attachment_of"] == "offer.eml~inner.eml"

    assert admin.delete(f"{documents}/offer.eml").status_code == 204

    assert admin.get(documents).json()["data"] == []
    assert found("tandem") == found("bicycle") == []


def test_an_attachment_whose_earlier_version_was_restored_goes_with_its_mail(
    admin, documents, put_mail, document
) -> None:
    for price in ("bicycle 450", "bicycle 390"):
        put_mail(mail(price_txt=price))
        assert document("offer.eml~price.txt")["state"] == "ready"
    restored = admin.post(
        f"{documents}/offer.eml~price.txt/restore", json={"version": 1}, headers={"Prefer": "wait=30"}
    )
    assert (restored.status_code, restored.json()["version"]) == (200, 3)

    admin.delete(f"{documents}/offer.eml")

    assert document("offer.eml~price.txt") is None


def test_a_mail_that_is_sent_again_does_nothing(put_mail, document) -> None:
    data = mail(price_txt="bicycle")
    put_mail(data)
    assert document("offer.eml~price.txt")["version"] == 1

    assert put_mail(data)["outcome"] == "unchanged"
    assert document("offer.eml~price.txt")["version"] == 1


def test_an_attachment_that_no_loader_reads_is_a_warning(put_mail, document, admin, documents) -> None:
    answer = put_mail(mail(price_txt="bicycle", tool_exe=b"MZ" + bytes(range(32)) * 20))

    assert [(w["code"], w["name"]) for w in answer["warnings"]] == [("attachment_not_read", "tool.exe")]
    assert document("offer.eml~price.txt")["state"] == "ready"
    assert len(admin.get(documents).json()["data"]) == 2


def test_attachments_above_the_limit_are_named(started) -> None:
    client = started(max_attachments=1)
    client.put("/v1/collections/c", json={})

    answer = client.put(
        "/v1/collections/c/documents/m/original", content=mail(a_txt="one", b_txt="two"), headers=WAIT
    ).json()

    assert answer["metadata"]["attachments"] == ["m~a.txt"]
    assert "FOOTNOTE_MAX_ATTACHMENTS" in answer["warnings"][0]["detail"]


def test_a_document_that_has_an_attachments_id_already_stays(put, collection, put_mail, document) -> None:
    put(collection, "offer.eml~price.txt", "my own words")

    put_mail(mail(price_txt="bicycle"))

    assert document("offer.eml")["metadata"]["attachments"] == ["offer.eml~price (2).txt"]
    assert document("offer.eml~price.txt")["metadata"] == {}


def test_a_document_put_under_an_attachments_id_is_no_attachment_any_more(
    admin, put, collection, documents, put_mail, document
) -> None:
    put_mail(mail(price_txt="bicycle"))
    assert document("offer.eml~price.txt")["state"] == "ready"
    put(collection, "offer.eml~price.txt", "my own words")

    admin.delete(f"{documents}/offer.eml")

    assert document("offer.eml~price.txt")["state"] == "ready"


def test_names_that_are_paths_and_names_given_twice_make_ids(put_mail, document) -> None:
    message = EmailMessage()
    message["Subject"] = "Two"
    message.set_content("See below.")
    for text in ("one", "two"):
        message.add_attachment(text, filename="a/b\\c.txt")
    put_mail(bytes(message), "two.eml")

    assert document("two.eml")["metadata"]["attachments"] == ["two.eml~a_b_c.txt", "two.eml~a_b_c (2).txt"]
    assert document("two.eml~a_b_c (2).txt")["state"] == "ready"


def test_the_password_of_a_mail_opens_its_attachments(admin, documents, document) -> None:
    from pathlib import Path

    pdf = (Path(__file__).parents[1] / "files" / "pdf" / "password.pdf").read_bytes()
    admin.put(
        f"{documents}/m/original", content=mail(secret_pdf=pdf), headers=WAIT | {"X-Document-Password": "password"}
    )

    assert document("m~secret.pdf")["state"] == "ready"


def test_an_attachment_that_cannot_be_read_fails_alone(put_mail, document) -> None:
    put_mail(mail(scan_pdf=b"%PDF-1.4\nnoise"))

    assert document("offer.eml")["state"] == "ready"
    assert document("offer.eml~scan.pdf")["error"]["code"] == "damaged_document"


def test_attachments_that_were_not_submitted_are_when_the_job_is_tried_again(started) -> None:
    # One thread, which is busy with the mail, and room for one job beside it.
    client = started(ingest_threads=1, max_queued_jobs=1)
    client.put("/v1/collections/c", json={})
    document = "/v1/collections/c/documents/m"
    answer = client.put(f"{document}/original", content=mail(a_txt="one", b_txt="two"), headers=WAIT)
    assert answer.json()["code"] == "queue_full"
    assert client.get(document).json()["state"] == "ready"
    assert client.get(f"{document}~b.txt").status_code == 404

    settle(client)
    again = client.post(f"{document}/retry", headers={"Prefer": "wait=30"})

    assert again.status_code == 200, again.text
    assert client.get(f"{document}~b.txt").status_code == 200


def test_a_mail_whose_attachments_are_above_the_quota_is_ready_and_names_them(
    admin: TestClient, collection: str, documents: str
) -> None:
    admin.patch(f"/v1/collections/{collection}", json={"quotas": {"documents": 2}})
    content = mail(offer_txt="forty pears", terms_txt="within a week")
    made = admin.put(f"{documents}/offer/original", content=content, headers=WAIT)
    assert (made.status_code, made.json()["state"]) == (201, "ready"), made.text
    assert [(each["code"], each["name"]) for each in made.json()["warnings"]] == [
        ("attachment_over_quota", "terms.txt")
    ]
    assert [entry["name"] for entry in made.json()["extraction"]["attachments"]] == ["offer.txt"]
    settle(admin)
    assert [each["id"] for each in admin.get(documents).json()["data"]] == ["offer", "offer~offer.txt"]


def test_a_mail_is_ready_without_those_attachments_whose_bytes_have_no_room(
    admin: TestClient, collection: str, documents: str
) -> None:
    content = mail(big_txt="forty pears " * 50, small_txt="within a week")
    admin.patch(f"/v1/collections/{collection}", json={"quotas": {"bytes": len(content) + 100}})
    made = admin.put(f"{documents}/offer/original", content=content, headers=WAIT)
    assert (made.status_code, made.json()["state"]) == (201, "ready"), made.text
    assert [(each["code"], each["name"]) for each in made.json()["warnings"]] == [("attachment_over_quota", "big.txt")]
    settle(admin)
    assert [each["id"] for each in admin.get(documents).json()["data"]] == ["offer", "offer~small.txt"]
