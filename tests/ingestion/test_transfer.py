from collections.abc import Callable
from pathlib import Path

import pytest

from app.domain import Chunk, Extraction, Heading, Notice, Page
from app.errors import DocumentLimitExceeded, FieldError, NoExtractableText, PasswordRequired, TooManyRequests
from app.ingestion.port import Prepared, PrepareRequest
from app.ingestion.transfer import Receiver, failure_frame, read_request, request_frame, result_frames

TEXT = "客户 \U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301 مرحبا\n" * 30_000


def received(prepared: Prepared) -> Prepared:
    receiver = Receiver()
    results = [receiver.receive(kind, payload) for kind, payload in result_frames(prepared, resident_bytes=7)]
    assert results[:-1] == [None] * (len(results) - 1)
    assert receiver.resident_bytes == 7
    assert results[-1] is not None
    return results[-1]


def test_a_result_arrives_as_it_was_sent() -> None:
    chunks = [Chunk(n, n * 10, n * 10 + 9, TEXT[n * 10 : n * 10 + 9], 5, "t › 客", ("a", "客")) for n in range(1000)]
    chunks[3] = Chunk(3, 30, 39, TEXT[30:39], 5, page_start=1, page_end=2, kind="parent")
    extraction = Extraction(
        text=TEXT,
        parser="pdfium",
        media_type="application/pdf",
        source_type="pdf",
        encoding="gb18030",
        title="客户",
        metadata={"tags": ["a", 1, True]},
        pages=tuple(Page(n, n * 5, n * 5 + 4) for n in range(500)),
        headings=tuple(Heading(1, f"客 {n}", n) for n in range(500)),
        coverage=0.5,
        warnings=(Notice("pages_without_text", "two", {"pages": [2, 3]}),),
        details={"records": 3},
    )
    prepared = Prepared(extraction, tuple(chunks), {"load": 1.5, "chunk": 2.0})

    assert received(prepared) == prepared


def test_no_frame_is_long_to_decode() -> None:
    prepared = Prepared(Extraction(TEXT * 4, "text", "text/plain", "text"), (), {})

    assert max(len(payload) for _, payload in result_frames(prepared, 0)) < 1_000_000


def test_a_request_arrives_as_it_was_sent(request_for: Callable[..., PrepareRequest], tmp_path: Path) -> None:
    request = request_for(tmp_path / "客户.pdf", password="s3cret", declared="text/plain", title="T")

    assert read_request(request_frame(request)[1]) == request


@pytest.mark.parametrize(
    "error",
    [
        DocumentLimitExceeded("too long", hint="raise it"),
        PasswordRequired("wrong", code="password_wrong"),
        NoExtractableText("none", extra={"report": {"by_page": [{"page": 1}]}}),
        TooManyRequests("wait", retry_after=1.5, errors=[FieldError("/a", "b", "c")]),
    ],
)
def test_an_error_arrives_as_it_was_raised(error) -> None:
    with pytest.raises(type(error)) as caught:
        Receiver().receive(*failure_frame(error))

    assert caught.value.problem() == error.problem()
