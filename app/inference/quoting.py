"""Quote texts of documents and callers for a language model, so that none passes for the frame of its prompt."""

import json
import re
from typing import Any

# Servers read these inside of a message too as what ends it and begins another one, a system's among them.
_CONTROL = re.compile(
    r"<(?=[|｜]|/?s>|<?/?SYS>|/?(?:start|end)_of_turn>|/?think>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS)\])"
)


def as_data(value: Any) -> str:
    """Return JSON in which no text can end its quotation or hold a control token of a chat template."""
    quoted = json.dumps(value, ensure_ascii=False)
    # Outside of strings JSON has neither sign before what the pattern looks for.
    return _CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", quoted)


def without_control_tokens(text: str) -> str:
    """Return the text with the control tokens of chat templates spaced out."""
    return _CONTROL.sub(lambda sign: f"{sign[0]} ", text)
