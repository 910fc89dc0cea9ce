"""Ask a site's robots.txt whether we may fetch a page of it (RFC 9309)."""

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlsplit

from protego import Protego

from app.errors import FetchFailed, UrlBlocked
from app.ingestion.guarded_http import GuardedHttp
from app.ingestion.guarded_network import Deadline

LIFETIME_SECONDS = 3600.0
MOST_BYTES = 500 * 1024
MOST_SITES = 256

_AGENT = re.compile(r"\s*user[ -]?agent\s*", re.IGNORECASE)
_TOKEN = re.compile(r"[^\s/#]+")
_NOBODY = "-"


class Robots:
    """The rules of sites, remembered for an hour; thread-safe."""

    def __init__(self, http: GuardedHttp, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._http = http
        # Rules name the product alone, without its version.
        self._product = http.user_agent.split("/")[0].split()[0]
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, Protego]] = OrderedDict()

    def require(self, url: str, deadline: Deadline) -> None:
        """Raise `UrlBlocked` where the site's rules do not let us, `FetchFailed` where it does not tell them."""
        parts = urlsplit(url)
        if not self._rules(f"{parts.scheme}://{parts.netloc}", deadline).can_fetch(url, self._product):
            raise UrlBlocked(
                f"robots.txt of {parts.netloc} does not allow {self._product} to fetch this page",
                code="robots_disallowed",
                hint="ask the site's owner, or put the document yourself",
            )

    def _rules(self, site: str, deadline: Deadline) -> Protego:
        with self._lock:
            expires, rules = self._known.get(site, (0.0, None))
        if rules is None or expires < self._monotonic():
            rules = Protego.parse(_for_product(self._text(site, deadline), self._product))
            with self._lock:
                self._known[site] = (self._monotonic() + LIFETIME_SECONDS, rules)
                self._known.move_to_end(site)
                if len(self._known) > MOST_SITES:
                    self._known.popitem(last=False)
        return rules

    def _text(self, site: str, deadline: Deadline) -> str:
        """Return the rules' text: none where the site has no such file."""
        with self._http.follow(f"{site}/robots.txt", deadline, {}, _allow) as (_, answer):
            if HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return ""
            if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                raise FetchFailed(
                    f"{site}/robots.txt was answered with {answer.status}, so that nothing of the site is fetched",
                    code="robots_unavailable",
                    hint="try again later",
                    retry_after=answer.retry_after(time.time()),
                )
            read = bytearray()
            for piece in answer.body:
                read += piece
                if len(read) > MOST_BYTES:
                    # Half a line might be another rule.
                    del read[max(read.rfind(end, 0, MOST_BYTES) for end in (b"\n", b"\r")) + 1 :]
                    break
        return read.decode("utf-8-sig", "replace")


def _for_product(text: str, product: str) -> str:
    """Return the rules with the product's name where a group names it, with a version or not, and no part of it."""
    return "\n".join(_agent_line(line, product) for line in text.splitlines())


def _agent_line(line: str, product: str) -> str:
    field, _, value = line.partition(":")
    if not _AGENT.fullmatch(field):
        return line
    named = _TOKEN.match(value.strip())
    name = named[0] if named else ""
    if name == "*":
        return line
    return f"User-agent: {product if name.rstrip('*').casefold() == product.casefold() else _NOBODY}"


def _allow(_url: str) -> None:
    """Let the rules themselves be read."""
