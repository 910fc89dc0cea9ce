"""A URL becomes a file, within limits and only where it has changed."""

import gzip
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from app.errors import FetchFailed, FootnoteError, PayloadTooLarge, UnsupportedMediaType, UrlBlocked
from app.ingestion.fetch import Fetched, Fetcher, Validators
from app.ingestion.guarded_http import GuardedHttp

LIMIT = 100_000


class Fetching:
    """A fetcher, the file it writes, and what it told on the way."""

    def __init__(self, site: Any, folder: Path) -> None:
        http = GuardedHttp([ip_network("127.0.0.1")], resolve=site.addresses)
        self.fetcher = Fetcher(http, most_bytes=LIMIT, timeout_seconds=10)
        self.target = folder / "fetched"
        self.told: list[int] = []

    def __call__(self, url: str, known: Validators | None = None) -> Fetched:
        return self.fetcher.fetch(url, self.target, known, self.told.append)


@pytest.fixture
def fetch(site: Any, tmp_path: Path) -> Fetching:
    return Fetching(site, tmp_path)


def failure(fetch: Fetching, url: str, kind: type[FootnoteError]) -> FootnoteError:
    with pytest.raises(kind) as raised:
        fetch(url)
    return raised.value


def test_what_the_url_names_is_written_with_its_type_its_name_and_where_it_was(fetch: Fetching, site: Any) -> None:
    site.pages["/old"] = site.Page(status=301, headers={"Location": "/docs/Leave%20policy.html?v=2"})
    headers = {"Content-Type": "text/html; charset=utf-8", "ETag": '"v2"', "Last-Modified": "yesterday"}
    site.pages["/docs/Leave%20policy.html?v=2"] = site.Page(b"<p>leave", headers=headers)
    fetched = fetch(f"{site.url}/old")
    assert fetch.target.read_bytes() == b"<p>leave"
    assert fetched == Fetched(
        url=f"{site.url}/docs/Leave%20policy.html?v=2",
        is_unchanged=False,
        media_type="text/html; charset=utf-8",
        filename="Leave policy.html",
        validators=Validators('"v2"', "yesterday"),
    )
    assert fetch.told == [8]


@pytest.mark.parametrize(
    ("path", "disposition", "filename"),
    [
        ("/", None, None),
        ("/a/", None, "a"),
        ("/x", 'attachment; filename="Plan 2026.pdf"', "Plan 2026.pdf"),
        ("/x", "attachment; filename*=UTF-8''%E5%B9%B4%E5%81%87.txt", "年假.txt"),
        ("/x", 'attachment; filename="../../etc/passwd"', "passwd"),
        ("/x", "inline", "x"),
        ("/x", "attachment; filename*=idna''xn--", "x"),
    ],
)
def test_the_file_name_is_the_server_s_or_the_url_s(
    fetch: Fetching, site: Any, path: str, disposition: str | None, filename: str | None
) -> None:
    headers = {} if disposition is None else {"Content-Disposition": disposition}
    site.pages[path] = site.Page(b"x", headers=headers)
    assert fetch(site.url + path).filename == filename


def test_an_unknown_type_is_left_to_detection(fetch: Fetching, site: Any) -> None:
    for headers in ({}, {"Content-Type": "application/octet-stream"}):
        site.pages["/"] = site.Page(b"x", headers=headers)
        assert fetch(site.url).media_type is None


def test_what_has_not_changed_is_not_sent_again(fetch: Fetching, site: Any) -> None:
    def page(visit: Any) -> Any:
        asked = (visit.headers.get("if-none-match"), visit.headers.get("if-modified-since"))
        return site.Page(status=304) if asked == ('W/"v1"', "Sat, 01 Jan 2000 00:00:00 GMT") else site.Page(b"new")

    site.pages["/"] = page
    known = Validators('W/"v1"', "Sat, 01 Jan 2000 00:00:00 GMT")
    assert fetch(site.url, known).is_unchanged
    assert not fetch.target.exists()
    assert not fetch(site.url, Validators('"other"')).is_unchanged
    assert fetch.target.read_bytes() == b"new"


def test_unchanged_without_being_asked_is_a_failure(fetch: Fetching, site: Any) -> None:
    site.pages["/"] = site.Page(status=304)
    assert failure(fetch, site.url, FetchFailed).extra == {"http_status": 304}


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_gone_is_told_apart(fetch: Fetching, site: Any, status: int) -> None:
    site.pages["/"] = site.Page(status=status)
    error = failure(fetch, site.url, FetchFailed)
    assert (error.code, error.extra) == ("url_not_found", {"http_status": status})


@pytest.mark.parametrize("status", [204, 206, 401, 403, 500])
def test_any_other_answer_is_a_failure(fetch: Fetching, site: Any, status: int) -> None:
    site.pages["/"] = site.Page(b"a secret of the server", status)
    error = failure(fetch, site.url, FetchFailed)
    assert (error.code, error.extra) == ("fetch_failed", {"http_status": status})
    assert "secret" not in str(error.problem())


def test_a_busy_server_says_when_to_come_back(fetch: Fetching, site: Any) -> None:
    site.pages["/"] = site.Page(status=429, headers={"Retry-After": "300"})
    assert failure(fetch, site.url, FetchFailed).retry_after == 300


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (bytes(LIMIT + 1), {}),
        (gzip.compress(bytes(LIMIT + 1)), {"Content-Encoding": "gzip"}),
        (b"", {"Content-Length": "9" * 12}),
    ],
    ids=["large", "bomb", "announced"],
)
def test_what_is_too_large_names_the_setting(fetch: Fetching, site: Any, body: bytes, headers: dict[str, str]) -> None:
    site.pages["/"] = site.Page(body, headers=headers)
    assert "FOOTNOTE_MAX_UPLOAD_BYTES" in failure(fetch, site.url, PayloadTooLarge).detail
    site.pages["/"] = site.Page(bytes(LIMIT))
    assert not fetch(site.url).is_unchanged


@pytest.mark.parametrize("media_type", ["video/mp4", "Audio/mpeg", "font/woff2"])
def test_what_holds_no_text_is_not_even_read(fetch: Fetching, site: Any, media_type: str) -> None:
    site.pages["/"] = site.Page(b"x", headers={"Content-Type": media_type})
    failure(fetch, site.url, UnsupportedMediaType)
    assert not fetch.target.exists()


def test_robots_are_asked_at_each_hop_before_the_page(fetch: Fetching, site: Any) -> None:
    site.pages["/robots.txt"] = site.Page(b"User-agent: *\nDisallow: /private")
    site.pages["/"] = site.Page(status=302, headers={"Location": "/private"})
    site.pages["/private"] = site.Page(b"x")
    assert failure(fetch, site.url, UrlBlocked).code == "robots_disallowed"
    assert site.paths() == ["/"]


def test_cancelling_ends_the_transfer(fetch: Fetching, site: Any) -> None:
    class Stop(Exception):
        pass

    def stop(_bytes: int) -> None:
        raise Stop

    site.pages["/"] = site.Page(b"x" * 1000)
    with pytest.raises(Stop):
        fetch.fetcher.fetch(site.url, fetch.target, None, stop)
