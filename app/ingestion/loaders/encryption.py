"""Decrypt an Office Open XML file, which is then an old OLE container around the package."""

import io
from pathlib import Path

from app.errors import DamagedDocument, PasswordRequired
from app.ingestion.port import Source

_OLE = b"\xd0\xcf\x11\xe0"


def decrypted(source: Source) -> Path | bytes:
    """Return the package: its path where it is not encrypted, else its bytes.

    Raises `PasswordRequired` without the right password and `DamagedDocument` for what cannot be decrypted.
    """
    with source.path.open("rb") as file:
        if file.read(len(_OLE)) != _OLE:
            return source.path
    if source.password is None:
        raise PasswordRequired("the document is encrypted", hint="send its password in X-Document-Password")
    # Slow to import and seldom needed.
    import msoffcrypto.exceptions

    package = io.BytesIO()
    try:
        container = msoffcrypto.OfficeFile(io.BytesIO(source.path.read_bytes()))
        container.load_key(password=source.password, verify_password=True)
        container.decrypt(package)
    except msoffcrypto.exceptions.InvalidKeyError as error:
        raise PasswordRequired(
            "the password does not open the document", code="password_wrong", hint="send another password"
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        raise DamagedDocument("the encrypted document cannot be decrypted") from error
    return package.getvalue()
