"""Find the admin key, or make it at the first start."""

import os
import secrets
from pathlib import Path

from filelock import FileLock

from app.errors import Misconfigured
from app.settings import Settings

_MINIMUM_LENGTH = 16


def admin_key(settings: Settings) -> tuple[str, bool]:
    """Return the admin key, and whether this call made it and wrote it to `admin.key` of the data folder.

    Processes that start at once agree on one key. Raises `Misconfigured` for a file that holds no key.
    """
    if settings.admin_key is not None:
        return settings.admin_key.get_secret_value(), False
    path = settings.data / "admin.key"
    settings.data.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name("admin.key.lock"), mode=0o600, poll_interval=0.01):
        if path.exists():
            return _read(path), False
        made = f"fn_admin_{secrets.token_hex(24)}"
        _write(path, made)
    return made, True


def _read(path: Path) -> str:
    key = path.read_text(encoding="utf-8").strip()
    if len(key) < _MINIMUM_LENGTH:
        raise Misconfigured(
            f"{path} holds no key of at least {_MINIMUM_LENGTH} characters",
            hint="delete the file and a new key is made, or set FOOTNOTE_ADMIN_KEY",
        )
    return key


def _write(path: Path, key: str) -> None:
    """Put the key there whole or not at all."""
    draft = path.with_name("admin.key.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(key + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
