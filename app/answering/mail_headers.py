"""Find the header lines of mails in a text, and the questions that ask about them."""

import re
from collections.abc import Iterator

_FIELD = re.compile(r"(From|To|Cc|Subject|Date): ")
_BLOCK = re.compile(rf"^{_FIELD.pattern}.*(?:\n{_FIELD.pattern}.*)+", re.M)
_ASKS_ABOUT_A_MAIL = re.compile(
    r"\b(?:e-?mails?|mails?|mailed|messages?|sen[dt]|sender|recipients?|wrote|writes?|addressed|subject|cc)\b"
    r"|邮件|电邮|郵件|发件|收件|寄件|发送|抄送|主题|写信|来信|发给|发来|寄给|谁发",
    re.I,
)


def header_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the headers of mails stand, as the loaders write them: lines one below the other, `From` first."""
    for block in _BLOCK.finditer(text):
        if block[0].startswith("From: "):
            yield block.span()


def asks_about_a_mail(question: str) -> bool:
    """Tell whether sender, recipient, subject or date of a mail may be the answer."""
    return _ASKS_ABOUT_A_MAIL.search(question) is not None
