import base64
import quopri
from email.message import EmailMessage

import pytest

from app.domain import Attachment
from app.errors import DocumentLimitExceeded, EmptyDocument, PasswordRequired
from app.ingestion.loaders import eml
from app.ingestion.port import LoadLimits, Source

HEAD = "From: Ann <ann@example.org>\nTo: Bo <bo@example.org>\nSubject: Hello\n"


@pytest.fixture
def attached(tmp_path):
    """Return the attachments that the loader hands out."""

    def read(data: bytes) -> tuple[Attachment, ...]:
        path = tmp_path / "a.eml"
        path.write_bytes(data)
        return eml.load(
            Source(path, "message/rfc822", None, None, None, LoadLimits(9, 10**6, 9, 9.0, 10**9))
        ).attachments

    return read


def parts(kind: str, *bodies: str, head: str = HEAD) -> bytes:
    inside = "".join(f"--{kind}\n{body}\n" for body in bodies)
    return f'{head}Content-Type: multipart/{kind}; boundary="{kind}"\n\n{inside}--{kind}--\n'.encode()


def part(kind: str, body: str, more: str = "") -> str:
    return f"Content-Type: {kind}\n{more}\n{body}"


def test_headers_come_first_and_become_metadata(load) -> None:
    data = (
        "From: Ann Lee <Ann@Example.org>\nTo: Bo <bo@example.org>, c@example.org\nCc: d@example.org\n"
        "Subject: Hello\nDate: Mon, 02 Jan 2023 10:00:00 +0100\nMessage-ID: <1@x>\nX-Spam: no\n\nThe body.\n"
    )
    extraction = load(data.encode(), "a.eml")

    assert extraction.text == (
        "From: Ann Lee <Ann@Example.org>\nTo: Bo <bo@example.org>, c@example.org\nCc: d@example.org\n"
        "Subject: Hello\nDate: Mon, 02 Jan 2023 10:00:00 +0100\n\nThe body."
    )
    assert extraction.title == "Hello"
    assert extraction.metadata == {
        "from": "ann@example.org",
        "from_name": "Ann Lee",
        "to": ["bo@example.org", "c@example.org"],
        "cc": ["d@example.org"],
        "subject": "Hello",
        "date": "2023-01-02T09:00:00Z",
        "message_id": "<1@x>",
    }


def test_plain_text_stands_for_the_html_beside_it(load) -> None:
    data = parts("alternative", part("text/plain", "The offer."), part("text/html", "<p>The <b>offer</b>.</p>"))

    assert load(data, "a.eml").text.endswith("Subject: Hello\n\nThe offer.")


def test_html_stands_for_a_notice_beside_it(load) -> None:
    long = "<h2>Offer</h2><p>" + "We sell bicycles of every size. " * 8 + "</p>"
    extraction = load(
        parts("alternative", part("text/plain", "Use another program."), part("text/html", long)), "a.eml"
    )

    assert "bicycles" in extraction.text
    assert "another program" not in extraction.text
    assert [heading.title for heading in extraction.headings] == ["Offer"]


@pytest.mark.parametrize("charset", ["utf-8", "gb18030", "iso-2022-jp", "euc-kr", "koi8-r", "iso-8859-1"])
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "8bit"])
def test_any_charset_and_transfer_encoding_is_read(load, charset: str, encoding: str) -> None:
    text = {"gb18030": "客户的方案", "iso-2022-jp": "東京の客", "euc-kr": "북조선 사람", "koi8-r": "Привет, мир"}.get(
        charset, "Straße und Café"
    )
    raw = text.encode(charset)
    body = {"base64": base64.b64encode(raw), "quoted-printable": quopri.encodestring(raw), "8bit": raw}[encoding]
    head = f"Subject: x\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: {encoding}\n\n"

    assert load(head.encode() + body, "a.eml").text == f"Subject: x\n\n{text}"


@pytest.mark.parametrize(
    ("header", "subject"),
    [
        ("=?utf-8?q?Caf=C3=A9_noir?=", "Café noir"),
        ("=?utf-8?B?5a6i?= =?utf-8?B?5oi3?=", "客户"),
        ("=?utf-8?B?5a6i5o==?= =?utf-8?B?iLc=?=", "客户"),
        ("Re: =?iso-8859-1?Q?Stra=DFe?= today", "Re: Straße today"),
        ("=?gb2312?B?v827pw==?=", "客户"),
        ("=?no-such-charset?Q?plain?=", "plain"),
        ("=?utf-8?B?not base64!?=", "not base64!"),
    ],
)
def test_encoded_words_in_headers_are_decoded(load, header: str, subject: str) -> None:
    assert load(f"Subject: {header}\n\nx".encode(), "a.eml").title == subject


def test_raw_bytes_in_headers_are_decoded(load) -> None:
    assert load("Subject: 客户方案\n\nx".encode(), "a.eml").title == "客户方案"
    assert load("Subject: 今天讨论了部署方案\n\nx".encode("gb18030"), "a.eml").title == "今天讨论了部署方案"


def test_a_forwarded_message_stands_where_it_is(load, attached) -> None:
    inner = "Content-Type: message/rfc822\n\nFrom: carl@example.org\nSubject: Inner\n\nThe inner body."
    data = parts("mixed", part("text/plain", "See below."), inner)

    assert load(data, "a.eml").text.endswith("See below.\n\nFrom: carl@example.org\nSubject: Inner\n\nThe inner body.")
    assert attached(data) == ()


def test_attachments_are_handed_out_with_name_and_type(attached) -> None:
    message = EmailMessage()
    message.set_content("x")
    message.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="表格.csv")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="scan.pdf")
    message.add_attachment(b"BEGIN:VCALENDAR", maintype="text", subtype="calendar")

    assert attached(bytes(message)) == (
        Attachment("表格.csv", "text/csv", b"a,b\n"),
        Attachment("scan.pdf", "application/pdf", b"%PDF"),
        Attachment("attachment-3.ics", "text/calendar", b"BEGIN:VCALENDAR"),
    )


def test_attachments_of_a_forwarded_message_are_handed_out_too(attached) -> None:
    inner, outer = EmailMessage(), EmailMessage()
    inner["Subject"] = "inner"
    inner.set_content("x")
    inner.add_attachment("words", filename="inner.txt")
    outer.set_content("y")
    outer.add_attachment(inner)

    assert [each.name for each in attached(bytes(outer))] == ["inner.txt"]


def test_pictures_of_a_page_are_no_attachments_but_named_files_beside_it_are(load, attached) -> None:
    logo = part("image/png; name=logo.png", "aGk=", "Content-ID: <logo>\nContent-Transfer-Encoding: base64\n")
    related = parts("related", part("text/html", "<p>Hi <img src='cid:logo'></p>"), logo, head="").decode()
    data = parts("mixed", related, part("text/plain; name=notes.txt", "notes"))

    assert load(data, "a.eml").text.endswith("\n\nHi")
    assert [each.name for each in attached(data)] == ["notes.txt"]


def test_signatures_are_left_out_and_what_no_one_reads_is_named(load) -> None:
    tnef = part("application/ms-tnef; name=winmail.dat", "eJw=", "Content-Transfer-Encoding: base64\n")
    data = parts("mixed", part("text/plain", "Hi."), part("application/pgp-signature", "-----BEGIN"), tnef)
    extraction = load(data, "a.eml")

    assert extraction.text.endswith("Hello\n\nHi.")
    assert [(notice.code, "winmail.dat" in notice.detail) for notice in extraction.warnings] == [
        ("part_not_read", True)
    ]


def test_an_encrypted_message_is_refused_with_a_plain_word(load) -> None:
    data = parts("encrypted", part("application/pgp-encrypted", "Version: 1"), part("application/octet-stream", "x"))

    with pytest.raises(PasswordRequired) as caught:
        load(data, "a.eml")
    assert caught.value.code == "encrypted_message"


def test_flowed_lines_are_joined(load) -> None:
    data = HEAD + "Content-Type: text/plain; format=flowed\n\nOne line that \ngoes on.\nAnother.\n-- \nAnn\n"

    assert load(data.encode(), "a.eml").text.endswith("One line that goes on.\nAnother.\n-- \nAnn")


def test_a_message_without_a_body_has_its_headers(load) -> None:
    assert load(HEAD.encode(), "a.eml").text == HEAD.strip()


def test_nothing_at_all_is_empty(load) -> None:
    with pytest.raises(EmptyDocument):
        load(b"X-Mailer: y\n\n \n", "a.eml")


def test_endless_nesting_is_refused(load) -> None:
    data = "".join(f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(3000))

    with pytest.raises(DocumentLimitExceeded, match="nested"):
        load(data.encode(), "a.eml")


def test_a_saved_web_page_is_read(load) -> None:
    data = parts("related", part("text/html", "<h1>Title</h1><p>Words</p>"), part("text/css", "p {}"), head="")

    assert load(data, "a.mht").text == "Title\n\nWords"


@pytest.mark.parametrize("told", ["filename*=idna''xn--", "filename*=utf-8\x00''a", "filename*0=a; filename*=utf-8''b"])
def test_an_attachment_whose_name_cannot_be_read_is_handed_out_under_another(attached, told) -> None:
    data = parts(
        "mixed", part("text/plain", "Hi"), part("text/csv", "a,b", f"Content-Disposition: attachment; {told}\n")
    )

    assert [each.name for each in attached(data)] == ["attachment-1"]


def test_a_charset_whose_own_name_cannot_be_read_is_found_by_the_letters(load) -> None:
    assert load(parts("mixed", part("text/plain; charset*=utf-8\x00''a", "Grüße")), "a.eml").text.endswith("Grüße")


def test_addresses_in_comments_without_end_cost_only_themselves(load) -> None:
    extraction = load(b"From: " + b"(" * 100_000 + b"\nTo: bo@example.org\n\nHi", "a.eml")

    assert extraction.metadata == {"to": ["bo@example.org"]}


def test_a_content_type_without_end_takes_no_time(load) -> None:
    data = b'Content-Type: text/plain; x="' + b";" * 1_000_000 + b"\n\nHi"

    assert load(data, "a.eml").text == "Hi"
