"""Call an OpenAI-compatible server: one client, one policy of retries, one translation of what goes wrong.

No address and no word of a server stands in an error or a log.
"""

import json
import logging
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol, cast

from app.errors import Misconfigured, Unavailable, UpstreamAuthentication, UpstreamRejected

if TYPE_CHECKING:
    from openai import OpenAI

_logger = logging.getLogger(__name__)

_CONNECT_TIMEOUT_SECONDS = 5.0

_PASSING = frozenset({408, 409, 429})

# The parameters that some servers do not take; no other word of a refusal is kept.
_OPTIONAL_PARAMETERS = frozenset({"max_completion_tokens", "max_tokens", "temperature"})

# The SDK asks for a key although many servers do not.
_NO_KEY = "none"


class _RawResponse(Protocol):
    @property
    def content(self) -> bytes: ...


def sendable(text: str) -> str:
    """Return the text without lone surrogates, which no JSON body can carry."""
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long a caller tries again; all times in seconds."""

    attempts: int
    first_pause: float
    longest_pause: float
    total: float


PROMPT = Patience(attempts=3, first_pause=0.2, longest_pause=2, total=5)
"""For work that a person waits for."""

PATIENT = Patience(attempts=4, first_pause=0.5, longest_pause=30, total=120)
"""For work in the background, where a server's own Retry-After is worth waiting for."""


class Refused(UpstreamRejected):
    """The server does not take this request; `http_status` and the optional `parameters` that it named say why."""

    def __init__(self, detail: str, *, http_status: int, parameters: frozenset[str], hint: str | None = None) -> None:
        super().__init__(detail, hint=hint)
        self.http_status = http_status
        self.parameters = parameters


@dataclass(frozen=True, slots=True)
class _Failure:
    """What is known of a failed attempt; no status means that no answer came."""

    status: int | None
    retry_after: float | None = None
    parameters: frozenset[str] = frozenset()

    @property
    def may_pass(self) -> bool:
        return self.status is None or self.status in _PASSING or self.status >= 500

    def __str__(self) -> str:
        return "did not answer" if self.status is None else f"answered {self.status}"


class RemoteServer:
    """One server in one role, such as "embedding server"; nothing is opened before the first call. Thread-safe.

    `unavailable` is what its absence raises. `sleep`, `monotonic`, `wall_clock` and `jitter` are there for tests.
    """

    def __init__(
        self,
        role: str,
        *,
        base_url: str,
        api_key: str | None,
        timeout_seconds: float,
        unavailable: type[Unavailable],
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise Misconfigured(f"The base URL of the {role} must begin with http:// or https://")
        self._role = role
        self._base_url = base_url
        self._api_key = api_key
        self._timeout_seconds = timeout_seconds
        self._unavailable = unavailable
        self._sleep = sleep
        self._monotonic = monotonic
        self._wall_clock = wall_clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._client: OpenAI | None = None

    def call(self, request: "Callable[[OpenAI], _RawResponse]", patience: Patience) -> dict[str, Any]:
        """Send a raw request and return the JSON object that answers it, after as many attempts as it takes.

        Raises the role's `Unavailable` when attempts or time are used up, `UpstreamAuthentication` for 401 and 403,
        `Refused` for any other status and `UpstreamRejected` for an answer that is no JSON object.
        """
        client = self._opened()
        started = self._monotonic()
        attempt = 0
        while True:
            attempt += 1
            outcome = self._attempt(client, request)
            if not isinstance(outcome, _Failure):
                return outcome
            if not outcome.may_pass:
                raise self._refusal(outcome)
            pause = self._pause(outcome, attempt, patience)
            if attempt == patience.attempts or self._monotonic() - started + pause > patience.total:
                raise self._absence(outcome, patience)
            _logger.warning("the %s %s; trying again", self._role, outcome, extra={"attempt": attempt, "pause": pause})
            self._sleep(pause)

    def load(self) -> None:
        """Make the client; no server is asked."""
        self._opened()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _opened(self) -> "OpenAI":
        with self._lock:
            if self._client is None:
                # Imported here: 38 MB and half a second that a process without remote models does not spend.
                import openai

                # The SDK would send what OPENAI_* variables hold, which may belong to another server.
                unsent = ("OpenAI-Organization", "OpenAI-Project")
                self._client = openai.OpenAI(
                    base_url=self._base_url,
                    api_key=self._api_key or _NO_KEY,
                    admin_api_key="",
                    default_headers=dict.fromkeys(unsent, cast("str", openai.omit)),
                    timeout=openai.Timeout(
                        self._timeout_seconds, connect=min(self._timeout_seconds, _CONNECT_TIMEOUT_SECONDS)
                    ),
                    max_retries=0,
                )
            return self._client

    def _attempt(self, client: "OpenAI", request: "Callable[[OpenAI], _RawResponse]") -> dict[str, Any] | _Failure:
        import openai

        try:
            content = request(client).content
        except openai.APIStatusError as error:
            return _Failure(
                error.status_code,
                self._retry_after(error.response.headers.get("retry-after")),
                _OPTIONAL_PARAMETERS.intersection(re.findall(r"\w+", error.response.text)),
            )
        except openai.APIConnectionError:
            return _Failure(None)
        return self._json_object(content)

    def _json_object(self, content: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise UpstreamRejected(
                f"The {self._role} did not answer with a JSON object", hint="check that its base URL ends in /v1"
            )
        return answer

    def _retry_after(self, header: str | None) -> float | None:
        """Return the seconds that a Retry-After header asks for, given as a number or as a date."""
        if not header:
            return None
        try:
            seconds = float(header)
        except ValueError:
            try:
                seconds = parsedate_to_datetime(header).timestamp() - self._wall_clock()
            except (ValueError, OverflowError):
                return None
        return max(0.0, seconds) if isfinite(seconds) else None

    def _pause(self, failure: _Failure, attempt: int, patience: Patience) -> float:
        """Return what the server asked for, or a doubling pause of which up to half is taken off at random."""
        if failure.retry_after is not None:
            return failure.retry_after
        longest = min(patience.longest_pause, patience.first_pause * 2 ** (attempt - 1))
        return float(longest * (1 - self._jitter() / 2))

    def _absence(self, failure: _Failure, patience: Patience) -> Unavailable:
        retry_after = failure.retry_after
        if retry_after is None and failure.status == 429:
            retry_after = patience.longest_pause
        return self._unavailable(f"The {self._role} {failure}", retry_after=retry_after, hint="try again later")

    def _refusal(self, failure: _Failure) -> UpstreamRejected:
        status = failure.status
        if status in (401, 403):
            return UpstreamAuthentication(
                f"The {self._role} refused the configured key with {status}", hint="check the key in the settings"
            )
        hint = "check its base URL and its model's name in the settings" if status == 404 else None
        return Refused(
            f"The {self._role} refused the request with {status}",
            http_status=status or 0,
            parameters=failure.parameters,
            hint=hint,
        )
