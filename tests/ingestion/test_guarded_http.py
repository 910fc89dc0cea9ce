"""Requests go to checked addresses only, whatever a URL, a name or a redirect says."""

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.errors import FetchFailed, UrlBlocked
from app.ingestion.guarded_http import MOST_REDIRECTS, GuardedHttp
from app.ingestion.guarded_network import Deadline, look_up

HERE = [ip_network("127.0.0.1/32")]
INSIDE = "127.0.0.2"


@pytest.fixture
def http(site: Any) -> GuardedHttp:
    """A client that may reach the site but no other address of this machine."""
    return GuardedHttp(HERE, resolve=site.addresses)


def get(http: GuardedHttp, url: str, seconds: float = 10) -> tuple[str, int, bytes]:
    with http.follow(url, Deadline(seconds), {}, lambda _url: None) as (at, answer):
        return at, answer.status, b"".join(answer.body)


def refused(http: GuardedHttp, url: str) -> str:
    with pytest.raises(UrlBlocked) as refusal:
        get(http, url)
    assert (refusal.value.status, refusal.value.code) == (422, "url_blocked")
    return refusal.value.detail


def test_an_answer_comes_with_status_headers_and_body(http: GuardedHttp, site: Any) -> None:
    site.pages["/a"] = site.Page(b"hello", 203)
    assert get(http, f"{site.url}/a#part") == (f"{site.url}/a", 203, b"hello")
    sent = site.visits[0].headers
    assert (sent["host"], sent["user-agent"]) == (f"{site.host}:{site.port}", "Footnote")
    assert not {"cookie", "authorization", "referer"} & sent.keys()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.2/",
        "http://0x7f.2/",
        "http://0177.0.0.2/",
        "http://127.2/",
        "http://2130706434/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.2]/",
        "http://[::ffff:7f00:2]/",
        "http://[64:ff9b::127.0.0.2]/",
        "http://[fe80::1%25lo]/",
        "http://[fe80::1%lo]/",
        "http://127。0。0。2/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0/",
        "file:///etc/passwd",
        "ftp://site.test/",
        "gopher://site.test/",
        "javascript:alert(1)",
        "//site.test/",
        "site.test",
        "",
        "http://",
        "http:///a",
        "http://user@site.test/",
        "http://user:word@site.test/",
        "http://site.test\\@evil.test/",
        "http://site.test:22/",
        "http://site.test:0/",
        "http://site.test:65536/",
        "http://si te.test/",
        "http://site.test%00.evil.test/",
        "http://site.test/\r\nHost: evil.test",
        "http://site.test/" + "a" * 5000,
    ],
)
def test_a_url_that_says_by_itself_where_it_leads_is_refused_without_a_look_up(url: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(host)

    http = GuardedHttp(HERE, resolve=resolve)
    with pytest.raises(UrlBlocked) as refusal:
        http.checked(url, "/sources/3/url")
    assert refusal.value.code == "url_blocked"


@pytest.mark.parametrize("host", ["0x7f.1", "2130706433", "0177.1", "127.1", "localhost"])
def test_what_the_resolver_makes_of_a_name_is_what_counts(host: str) -> None:
    refused(GuardedHttp(resolve=look_up), f"http://{host}/")


@pytest.mark.parametrize(
    "addresses", [[INSIDE], ["127.0.0.1", INSIDE], [INSIDE, "127.0.0.1"], ["127.0.0.1", "fe80::1%lo"], ["nonsense"]]
)
def test_a_name_is_refused_if_one_of_its_addresses_leads_inside(site: Any, addresses: list[str]) -> None:
    site.pages["/"] = site.Page(b"reached")
    http = GuardedHttp(HERE, resolve=lambda _host, _port: addresses)
    detail = refused(http, f"http://7f000001.nip.io:{site.port}/")
    assert "7f000001.nip.io" in detail
    assert INSIDE not in detail
    assert site.visits == []


def test_a_name_is_looked_up_once_and_the_connection_goes_to_that_answer(site: Any) -> None:
    answers = iter([["127.0.0.1"], [INSIDE]])
    site.pages["/"] = site.Page(b"reached")
    assert get(GuardedHttp(HERE, resolve=lambda _host, _port: next(answers)), site.url)[2] == b"reached"
    assert next(answers) == [INSIDE]


def test_the_next_address_is_tried_where_the_first_takes_no_connection(site: Any) -> None:
    site.pages["/"] = site.Page(b"reached")
    networks = [*HERE, ip_network("127.0.0.3/32")]
    http = GuardedHttp(networks, resolve=lambda _host, _port: ["127.0.0.3", "127.0.0.1"])
    assert get(http, site.url)[2] == b"reached"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(http: GuardedHttp, site: Any, status: int) -> None:
    site.pages["/a/b"] = site.Page(status=status, headers={"Location": "../c?x=1"})
    site.pages["/c?x=1"] = site.Page(b"there")
    assert get(http, f"{site.url}/a/b") == (f"{site.url}/c?x=1", 200, b"there")


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.2/",
        "//127.0.0.2/",
        "http://[::ffff:127.0.0.2]/",
        "file:///etc/passwd",
        "http://user:word@site.test/",
        "http://site.test:25/",
        "http://[",
    ],
)
def test_a_redirect_that_leads_inside_is_refused(http: GuardedHttp, site: Any, location: str) -> None:
    site.pages["/"] = site.Page(status=302, headers={"Location": location})
    refused(http, site.url)


def test_a_redirect_to_a_name_that_leads_inside_is_refused(site: Any) -> None:
    def resolve(host: str, port: int) -> list[str]:
        return [INSIDE] if host == "inside.test" else ["127.0.0.1"]

    site.pages["/"] = site.Page(status=302, headers={"Location": f"http://inside.test:{site.port}/"})
    refused(GuardedHttp(HERE, resolve=resolve), site.url)


def test_redirects_have_an_end(http: GuardedHttp, site: Any) -> None:
    site.pages["/"] = site.Page(status=302, headers={"Location": "/"})
    with pytest.raises(FetchFailed, match="redirects more than"):
        get(http, site.url)
    assert len(site.visits) == 1 + MOST_REDIRECTS


def test_proxies_of_the_environment_are_not_used(http: GuardedHttp, site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    site.pages["/"] = site.Page(b"direct")
    assert get(http, site.url)[2] == b"direct"


def test_a_compressed_body_is_inflated_in_small_pieces(http: GuardedHttp, site: Any) -> None:
    packed = gzip.compress(bytes(50_000_000)) + gzip.compress(b"end") + b"\0\0"
    site.pages["/"] = site.Page(packed, headers={"Content-Encoding": "gzip"})
    with http.send("GET", site.url, Deadline(20)) as answer:
        sizes = [len(piece) for piece in answer.body]
    assert sum(sizes) == 50_000_003
    assert max(sizes) < 1_000_000


@pytest.mark.parametrize(
    ("body", "coding", "told"),
    [
        (gzip.compress(b"text" * 999)[:-9], "gzip", "damaged or ends too early"),
        (b"no gzip", "gzip", "damaged or ends too early"),
        (b"x", "br", "the coding 'br'"),
        (b"x", "gzip, gzip", "the coding 'gzip, gzip'"),
    ],
)
def test_a_damaged_body_is_an_error_and_not_half_a_document(
    http: GuardedHttp, site: Any, body: bytes, coding: str, told: str
) -> None:
    site.pages["/"] = site.Page(body, headers={"Content-Encoding": coding})
    with pytest.raises(FetchFailed, match=told):
        get(http, site.url)


def test_a_body_that_breaks_off_is_an_error(http: GuardedHttp, site: Any) -> None:
    site.pages["/"] = site.Page(b"short", headers={"Content-Length": "100"})
    with pytest.raises(FetchFailed, match="broke its answer off"):
        get(http, site.url)


def test_a_server_that_hangs_up_or_is_not_there_is_an_error(http: GuardedHttp, site: Any) -> None:
    site.pages["/"] = None
    with pytest.raises(FetchFailed):
        get(http, site.url)


def test_nobody_learns_which_names_exist_inside() -> None:
    def inside(host: str, _port: int) -> list[str]:
        if host == "known.test":
            return [INSIDE]
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    http = GuardedHttp(HERE, resolve=inside)
    assert refused(http, "http://known.test/").replace("known", "other") == refused(http, "http://other.test/")


def test_a_name_that_leads_inside_the_next_time_gains_nothing(site: Any) -> None:
    answers = iter([["127.0.0.1"], [INSIDE], [INSIDE]])
    http = GuardedHttp(HERE, resolve=lambda _host, _port: next(answers))
    site.pages["/"] = site.Page(b"hello")
    assert get(http, f"http://site.test:{site.port}/")[2] == b"hello"
    refused(http, f"http://site.test:{site.port}/")
    assert next(answers) == [INSIDE]


@pytest.fixture
def slow_drip() -> Iterator[int]:
    """The port of a server that sends a byte of an endless answer each 20 ms."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                try:
                    while True:
                        connection.sendall(b"x")
                        time.sleep(0.02)
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        yield listening.getsockname()[1]
        dripping.join(10)


def test_a_server_that_only_drips_meets_the_deadline(slow_drip: int) -> None:
    began = time.monotonic()
    with pytest.raises(FetchFailed) as failure:
        get(GuardedHttp(HERE), f"http://127.0.0.1:{slow_drip}/", seconds=0.3)
    assert failure.value.code == "fetch_timeout"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        ("Thu, 01 Jan 1970 00:03:20 GMT", 100),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("Thu, 01 Jan 1970 00:00:00 +99999999999999", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(
    http: GuardedHttp, site: Any, header: str, seconds: float | None
) -> None:
    site.pages["/"] = site.Page(status=503, headers={"Retry-After": header})
    with http.send("GET", site.url, Deadline(10)) as answer:
        assert answer.retry_after(100.0) == seconds


# --- TLS ---


def certificate(name: str) -> tuple[bytes, bytes]:
    """Return a self-signed certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return built.public_bytes(serialization.Encoding.PEM), private


@pytest.fixture
def secured(site: Any, tmp_path: Path) -> Callable[[str], GuardedHttp]:
    """Give the site a certificate for a name, and return a client that trusts it."""

    def secure(name: str) -> GuardedHttp:
        public, private = certificate(name)
        (tmp_path / "cert.pem").write_bytes(public + private)
        server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server_side.load_cert_chain(tmp_path / "cert.pem")
        site.server.socket = server_side.wrap_socket(site.server.socket, server_side=True)
        trusting = ssl.create_default_context(cadata=public.decode())
        return GuardedHttp(HERE, resolve=site.addresses, ssl_context=trusting)

    return secure


def test_the_certificate_is_verified_against_the_name_and_not_the_address(
    site: Any, secured: Callable[[str], GuardedHttp]
) -> None:
    http = secured("site.test")
    site.pages["/"] = site.Page(b"secret")
    assert get(http, f"https://site.test:{site.port}/")[2] == b"secret"


def test_another_name_s_certificate_is_refused(site: Any, secured: Callable[[str], GuardedHttp]) -> None:
    http = secured("other.test")
    with pytest.raises(FetchFailed):
        get(http, f"https://site.test:{site.port}/")


def test_a_redirect_does_not_leave_https(site: Any, secured: Callable[[str], GuardedHttp]) -> None:
    http = secured("site.test")
    site.pages["/"] = site.Page(status=301, headers={"Location": f"http://site.test:{site.port}/plain"})
    assert "from https to http" in refused(http, f"https://site.test:{site.port}/")
