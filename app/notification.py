"""Tell webhooks what happened: make events of jobs that end, sign them, deliver them, and try again.

An event is written in the transaction of what it tells of, survives a restart, and is delivered at least once.
"""

import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from app.catalog.job import Job, JobState
from app.catalog.webhook import Delivery, Event, Webhook
from app.catalog.webhooks import Webhooks
from app.errors import FootnoteError
from app.ingestion.guarded_http import GuardedHttp
from app.ingestion.guarded_network import Deadline
from app.ingestion.tasks import WRITES
from app.telemetry import counters

log = logging.getLogger(__name__)

DOCUMENT_READY = "document.ready"
DOCUMENT_FAILED = "document.failed"
JOB_FINISHED = "job.finished"
PING = "ping"

FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 3600.0
POLL_SECONDS = 1.0
TRIM_SECONDS = 300.0
LEASE_MARGIN_SECONDS = 30.0


class Notifier:
    """Announce and deliver; thread-safe, and safe for several processes on one catalog."""

    def __init__(
        self,
        webhooks: Webhooks,
        http: GuardedHttp,
        *,
        timeout_seconds: float,
        most_at_once: int = 1,
        most_attempts: int,
        retention_days: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._webhooks = webhooks
        self._http = http
        self._timeout_seconds = timeout_seconds
        # One place is left for other collections, however many receivers of one do not answer.
        self._most_of_one = max(1, most_at_once - 1)
        self._most_attempts = most_attempts
        self._retention = timedelta(days=retention_days)
        self._clock = clock
        self._owner = secrets.token_hex(12)
        self._trimmed: float | None = None

    def checked(self, url: str, pointer: str = "/url") -> str:
        """Return the URL in its normal form, or raise `UrlBlocked` for one that is refused without a look-up."""
        return self._http.checked(url, pointer)

    def notify(self) -> None:
        """Wake who delivers, after what was announced is committed."""
        self._webhooks.notify()

    # --- deliver ---

    def deliver_or_wait(self) -> None:
        """Make the attempt whose turn it is, or wait a moment for one; forget old deliveries now and then."""
        if self._trimmed is None or time.monotonic() - self._trimmed > TRIM_SECONDS:
            self._trimmed = time.monotonic()
            self._webhooks.remove_ended(datetime.now(UTC) - self._retention)
        if not self.deliver_next():
            with self._webhooks.wake:
                self._webhooks.wake.wait(POLL_SECONDS)

    def deliver_next(self) -> bool:
        """Make the attempt whose turn it is, if one is due; return whether there was one."""
        lease_seconds = self._timeout_seconds + LEASE_MARGIN_SECONDS
        claimed = self._webhooks.claim(self._owner, lease_seconds, most_of_one=self._most_of_one)
        if claimed is None:
            return False
        delivery, webhook = claimed
        status, error = self._attempt(delivery, webhook)
        if error is None:
            self._webhooks.delivered(delivery, status or 0)
            counters.add("webhooks_delivered")
        elif status == HTTPStatus.GONE:
            self._webhooks.deactivate(webhook.id)
            log.warning("a webhook's receiver is gone", extra={"webhook_id": webhook.id})
        else:
            self._webhooks.failed(delivery, status=status, error=error, pause_seconds=self._pause(delivery.attempts))
            counters.add("webhook_attempts_failed")
        return True

    def _attempt(self, delivery: Delivery, webhook: Webhook) -> tuple[int | None, str | None]:
        """Return the receiver's status, if it answered, and what was wrong, if anything."""
        body = json.dumps(delivery.payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        headers = {
            "Content-Type": "application/json",
            "Footnote-Event": delivery.event,
            "Footnote-Delivery": delivery.id,
            "Footnote-Signature": signature(webhook.secret, int(self._clock()), body),
        }
        try:
            deadline = Deadline(self._timeout_seconds)
            with self._http.send("POST", webhook.url, deadline, headers=headers, content=body) as answer:
                is_taken = HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
                return answer.status, None if is_taken else f"the receiver answered {answer.status}"
        except FootnoteError as error:
            return None, error.detail
        except Exception:
            log.exception("a delivery met a bug", extra={"delivery_id": delivery.id})
            return None, "an unexpected error ended this attempt"

    def _pause(self, attempts: int) -> float | None:
        """Return the seconds until the next attempt, doubled by each one and a quarter shorter at random."""
        if attempts >= self._most_attempts:
            return None
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(attempts - 1, 30))
        return longest * (1 - secrets.randbelow(250) / 1000)


def announce_end(webhooks: Webhooks, connection: Any, job: Job) -> None:
    """Queue what the end of a job means to the webhooks of its collection, in the transaction that ends it."""
    webhooks.announce(connection, job.collection_id, job_events(job))


def signature(secret: str, moment: int, body: bytes) -> str:
    """Return the `Footnote-Signature` of a body that is sent at a moment, in seconds since 1970."""
    signed = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256)
    return f"t={moment},v1={signed.hexdigest()}"


def job_events(job: Job) -> tuple[Event, ...]:
    """Return what the end of a job means to who waits for it; a document that did not change is not ready anew."""
    told = {"job_id": job.id, "kind": job.kind, "document_id": job.document_id}
    result = job.result or {}
    events = [Event(JOB_FINISHED, told | {"state": job.state.value, "error": job.error, "result": job.result})]
    if job.kind in WRITES and job.state is JobState.FAILED:
        events.insert(0, Event(DOCUMENT_FAILED, told | {"error": job.error}))
    if job.kind in WRITES and job.state is JobState.SUCCEEDED and result.get("outcome") != "unchanged":
        members = {name: result.get(name) for name in ("outcome", "version", "etag", "chunks")}
        events.insert(0, Event(DOCUMENT_READY, told | members))
    return tuple(events)
