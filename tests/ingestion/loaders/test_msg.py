from pathlib import Path

import pytest

from app.errors import DamagedDocument
from app.ingestion.loaders import msg
from app.ingestion.port import LoadLimits, Source

SAMPLE = Path(__file__).parents[2] / "files" / "eml" / "test_outlook_msg.msg"


class Container:
    """Stands for an OLE container: streams by their path."""

    def __init__(self, **streams: bytes) -> None:
        self._streams = {tuple(path.split("/")): data for path, data in streams.items()}

    def exists(self, path: list[str]) -> bool:
        return tuple(path) in self._streams

    def openstream(self, path: list[str]):
        import io

        return io.BytesIO(self._streams[tuple(path)])

    def listdir(self, *, streams: bool, storages: bool) -> list[list[str]]:
        folders = {path[:depth] for path in self._streams for depth in range(1, len(path))}
        return [list(path) for path in sorted(folders)]


def text(words: str) -> bytes:
    return words.encode("utf-16-le")


def read(**streams: bytes):
    source = Source(Path("x"), msg.MEDIA_TYPES[0], None, None, None, LoadLimits(9, 10**6, 9, 9.0, 10**9))
    return msg._Letter(Container(**{"__properties_version1.0": bytes(32), **streams}), source).extraction()


def test_the_message_of_a_real_file_is_read(load) -> None:
    extraction = load(SAMPLE.read_bytes(), "a.msg")

    assert extraction.title == "Test Email Message"
    assert extraction.text.endswith(
        "\nDate: Sun, 22 Dec 2024 11:23:00 +0300\n\nThis is the body of the test email message"
    )
    assert extraction.source_type == "email"
    assert extraction.metadata["from"] == "test.sender@example.com"
    assert extraction.metadata["to"] == ["test.recipient@example.com"]
    assert extraction.metadata["date"] == "2024-12-22T08:23:00Z"


def test_attachments_and_messages_inside_are_told_apart() -> None:
    extraction = read(
        **{
            "__substg1.0_0037001F": text("Outer"),
            "__substg1.0_1000001F": text("Outer body"),
            "__attach_version1.0_#00000000/__substg1.0_37010102": b"a,b",
            "__attach_version1.0_#00000000/__substg1.0_3707001F": text("表格.csv"),
            "__attach_version1.0_#00000001/__substg1.0_3701000D/__properties_version1.0": bytes(24),
            "__attach_version1.0_#00000001/__substg1.0_3701000D/__substg1.0_0037001F": text("Inner"),
            "__attach_version1.0_#00000001/__substg1.0_3701000D/__substg1.0_1000001F": text("Inner body"),
        }
    )

    assert extraction.text == "Subject: Outer\n\nOuter body\n\nSubject: Inner\n\nInner body"
    assert [(each.name, each.data) for each in extraction.attachments] == [("表格.csv", b"a,b")]


def test_names_of_people_keep_their_addresses() -> None:
    extraction = read(
        **{
            "__substg1.0_0C1A001F": text("Lee, Ann"),
            "__substg1.0_5D01001F": text("ann@example.org"),
            "__substg1.0_0E04001F": text("Bo Berg; carl@example.org"),
            "__recip_version1.0_#00000000/__substg1.0_3001001F": text("Bo Berg"),
            "__recip_version1.0_#00000000/__substg1.0_39FE001F": text("bo@example.org"),
            "__substg1.0_1000001F": text("x"),
        }
    )

    assert extraction.text.startswith(
        "From: Lee, Ann <ann@example.org>\nTo: Bo Berg <bo@example.org>, carl@example.org"
    )
    assert extraction.metadata["from"] == "ann@example.org"
    assert extraction.metadata["to"] == ["bo@example.org", "carl@example.org"]


def test_the_moment_it_was_sent_stands_among_the_properties() -> None:
    ticks = (133_481_088_000_000_000).to_bytes(8, "little")
    properties = bytes(32) + (0x00390040).to_bytes(4, "little") + bytes(4) + ticks
    extraction = read(**{"__properties_version1.0": properties, "__substg1.0_1000001F": text("x")})

    assert extraction.metadata["date"] == "2023-12-27T00:00:00Z"


def test_a_page_of_html_is_read_and_a_body_that_no_one_reads_is_named() -> None:
    assert read(**{"__substg1.0_10130102": "<p>Größe</p>".encode()}).text == "Größe"
    extraction = read(**{"__substg1.0_0037001F": text("Only RTF"), "__substg1.0_10090102": b"LZFu"})
    assert [notice.code for notice in extraction.warnings] == ["part_not_read"]


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_file_that_is_cut_off_is_damaged(load, keep: float) -> None:
    data = SAMPLE.read_bytes()

    with pytest.raises(DamagedDocument):
        load(data[: int(len(data) * keep)], "a.msg")
