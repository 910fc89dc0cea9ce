"""Generate through any OpenAI-compatible chat server: Ollama, vLLM, llama.cpp, DeepSeek, Azure, Gemini and others."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.errors import UpstreamRejected
from app.inference.port import Completion, Message
from app.inference.remote import PATIENT, PROMPT, Patience, Refused, RemoteServer, sendable

MOST_CHARACTERS_PER_TOKEN = 40
"""A token of prose has 1 to 6; each claim of an answer far beyond what was asked for would cost us an embedding."""

ALWAYS_READ_CHARACTERS = 4000
"""An answer of this length is read whatever was asked for, since some servers do not take small limits exactly."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_THINK = "<think>"
_END_OF_THINK = "</think>"


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Which parameters a server takes; OpenAI's reasoning models refuse `max_tokens` and any temperature."""

    limit: str = "max_tokens"
    temperature: bool = True

    def parameters(self, max_tokens: int, temperature: float) -> dict[str, Any]:
        return {self.limit: max_tokens} | ({"temperature": temperature} if self.temperature else {})

    def without(self, refusal: Refused) -> "_Dialect | None":
        """Return the dialect without what the server named, or `None` when it named nothing that was sent."""
        if refusal.http_status == 400 and "max_tokens" in refusal.parameters and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if refusal.http_status == 400 and "temperature" in refusal.parameters and self.temperature:
            return replace(self, temperature=False)
        return None


class OpenAICompatibleLanguageModel:
    """Ask for one completion; what the server refuses by name is left out from then on."""

    def __init__(self, server: RemoteServer, *, model: str, context_tokens: int) -> None:
        self._server = server
        self._model = model
        self._context_tokens = context_tokens
        self._dialect = _Dialect()

    @property
    def name(self) -> str:
        """Return the configured name."""
        return self._model

    @property
    def context_tokens(self) -> int:
        """Return the configured window."""
        return self._context_tokens

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float,
        patient: bool = False,
        timeout_seconds: float | None = None,
    ) -> Completion:
        """Return the next message without its reasoning; raises what the port says."""
        dialect = self._dialect
        patience = PATIENT if patient else PROMPT
        limit: dict[str, Any] = {}
        if timeout_seconds is not None:
            patience = replace(patience, total=min(patience.total, timeout_seconds))
            limit["timeout"] = timeout_seconds
        while True:
            try:
                answer = self._request(messages, dialect.parameters(max_tokens, temperature) | limit, patience)
            except Refused as refusal:
                simpler = dialect.without(refusal)
                if simpler is None:
                    raise
                dialect = simpler
            else:
                self._dialect = dialect
                return self._completion(answer, max_tokens)

    def load(self) -> None:
        """Make the client; no server is asked."""
        self._server.load()

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _request(self, messages: Sequence[Message], parameters: dict[str, Any], patience: Patience) -> dict[str, Any]:
        turns: Any = [{"role": message.role, "content": sendable(message.content)} for message in messages]
        return self._server.call(
            lambda client: client.chat.completions.with_raw_response.create(
                model=self._model, messages=turns, **parameters
            ),
            patience,
        )

    def _completion(self, answer: dict[str, Any], max_tokens: int) -> Completion:
        choice = _first(answer.get("choices"))
        message = choice.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        text = _without_reasoning(_storable(content)) if isinstance(content, str) else ""
        finish_reason = choice.get("finish_reason")
        if not text:
            cut = finish_reason == "length"
            raise UpstreamRejected(
                "The language model answered with no text" + (" within its token limit" if cut else ""),
                hint="raise max_tokens: its reasoning counts" if cut else None,
            )
        if len(text) > max(ALWAYS_READ_CHARACTERS, max_tokens * MOST_CHARACTERS_PER_TOKEN):
            raise UpstreamRejected(
                f"The language model answered with {len(text)} characters where {max_tokens} tokens were asked for",
                hint="raise max_tokens, or look at why the model's server does not keep it",
            )
        usage = answer.get("usage")
        return Completion(
            text=text,
            model=_storable(str(answer.get("model") or self._model)),
            prompt_tokens=_count(usage, "prompt_tokens"),
            completion_tokens=_count(usage, "completion_tokens"),
            finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        )


def _first(choices: Any) -> dict[str, Any]:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    raise UpstreamRejected("The language model's server answered without a choice")


def _count(usage: Any, name: str) -> int:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) else 0


def _storable(text: str) -> str:
    """Drop what JSON can escape but UTF-8 cannot hold, and NUL."""
    return _UNSTORABLE.sub("", text)


def _without_reasoning(text: str) -> str:
    """Drop reasoning that stands before the answer, also where the server swallowed its opening tag."""
    before, end, after = text.partition(_END_OF_THINK)
    opened = before.lstrip().startswith(_THINK)
    if end and (opened or _THINK not in before):
        return after.strip()
    return "" if opened else text.strip()
