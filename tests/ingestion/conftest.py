"""Files made on the spot, and a loader call as the parsing process makes it."""

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from app.bootstrap import Services, build_services
from app.catalog.collections import Collection
from app.catalog.job import Job
from app.catalog.sources import Source
from app.domain import ChunkingOptions, Document, Extraction
from app.inference.port import TokenCounterSpec
from app.ingestion.collections import create_collection
from app.ingestion.port import LoadLimits, PrepareRequest
from app.ingestion.prepare import load as load_request
from app.ingestion.refresh import FetchRequest, accept_fetch, queue_refresh
from app.settings import Settings
from app.worker import Worker

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
LIMITS = LoadLimits(
    max_pages=5000,
    max_characters=100_000_000,
    max_chunks=200_000,
    parse_timeout_seconds=60,
    parse_memory_bytes=2_000_000_000,
)


@pytest.fixture
def request_for() -> Callable[..., PrepareRequest]:
    """Return a request for a file; `limits` are changes to generous ones."""

    def make(path: Path, **changes: object) -> PrepareRequest:
        limits = replace(LIMITS, **changes.pop("limits", {}))  # type: ignore[arg-type]
        request = PrepareRequest(
            path=path,
            declared=None,
            filename=path.name,
            password=None,
            title=None,
            chunking=ChunkingOptions(),
            token_counter=TokenCounterSpec("estimate"),
            window_tokens=512,
            limits=limits,
        )
        return replace(request, **changes)  # type: ignore[arg-type]

    return make


@pytest.fixture
def load(tmp_path: Path, request_for: Callable[..., PrepareRequest]) -> Callable[..., Extraction]:
    """Return a function that writes bytes to a file of a name and loads it."""

    def run(data: bytes, filename: str, **changes: object) -> Extraction:
        path = tmp_path / filename
        path.write_bytes(data)
        return load_request(request_for(path, **changes))

    return run


@pytest.fixture
def make_pdf() -> Callable[..., bytes]:
    """Return a function that writes a PDF; each page is a text, `None` for an image, or bytes of content."""
    return _pdf


def _pdf(pages: list[str | bytes | None], *, outline: list[tuple[str, int]] = (), title: str = "") -> bytes:  # type: ignore[assignment]
    objects: list[bytes] = []

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    def stream(data: bytes, entries: bytes = b"") -> bytes:
        packed = zlib.compress(data)
        return b"<<%s/Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (entries, len(packed), packed)

    catalog, tree = add(b""), add(b"")
    font = add(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    size = b"/Type/XObject/Subtype/Image/Width 8/Height 8/BitsPerComponent 8/ColorSpace/DeviceGray"
    image = add(stream(bytes(range(64)), size))
    kids = []
    for page in pages:
        if page is None:
            content = b"q 400 0 0 400 50 200 cm /I Do Q"
        elif isinstance(page, bytes):
            content = page
        else:
            lines = page.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").split("\n")
            content = (
                b"BT /F 12 Tf 72 720 Td 14 TL " + b" ".join(b"(%s) Tj T*" % x.encode("latin-1") for x in lines) + b" ET"
            )
        contents = add(stream(content))
        resources = b"<</Font<</F %d 0 R>>/XObject<</I %d 0 R>>>>" % (font, image)
        entries = (tree, contents, resources)
        kids.append(add(b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources%s>>" % entries))
    entry = b""
    if outline:
        root = len(objects) + 1
        places = [root + 1 + place for place in range(len(outline))]
        add(b"<</First %d 0 R/Last %d 0 R/Count %d>>" % (places[0], places[-1], len(places)))
        for place, (text, page) in enumerate(outline):
            following = b"/Next %d 0 R" % places[place + 1] if place + 1 < len(places) else b""
            add(b"<</Title(%s)/Parent %d 0 R/Dest[%d 0 R/Fit]%s>>" % (text.encode(), root, kids[page - 1], following))
        entry = b"/Outlines %d 0 R" % root
    information = add(b"<</Title(%s)>>" % title.encode("latin-1"))
    objects[catalog - 1] = b"<</Type/Catalog/Pages %d 0 R%s>>" % (tree, entry)
    objects[tree - 1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(
        b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(b"%010d 00000 n \n" % p for p in places)
    )
    out.write(b"trailer<</Size %d/Root %d 0 R/Info %d 0 R>>\n" % (len(objects) + 1, catalog, information))
    out.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


@pytest.fixture
def make_docx() -> Callable[..., bytes]:
    """Return a function that packs a DOCX from the XML of its body and of further parts by relation."""
    return _docx


def _docx(body: str, **parts: str) -> bytes:
    """Parts are named by their relation (`styles`, `header_1`); the body may refer to them as `r:id="header_1"`."""
    spaces = (
        f'xmlns:w="{W}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
        'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
        'xmlns:v="urn:schemas-microsoft-com:vml" '
        'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    )
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    roots = {"header": "hdr", "footer": "ftr", "styles": "styles", "numbering": "numbering", "footnotes": "footnotes"}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        main = f'<Relationship Id="main" Type="{kind}/officeDocument" Target="word/document.xml"/>'
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{relations}">{main}</Relationships>')
        archive.writestr("word/document.xml", f"<w:document {spaces}><w:body>{body}</w:body></w:document>")
        links = []
        for name, inside in parts.items():
            part = name.split("_")[0]
            archive.writestr(f"word/{name}.xml", f"<w:{roots[part]} {spaces}>{inside}</w:{roots[part]}>")
            links.append(f'<Relationship Id="{name}" Type="{kind}/{part}" Target="{name}.xml"/>')
        archive.writestr(
            "word/_rels/document.xml.rels", f'<Relationships xmlns="{relations}">{"".join(links)}</Relationships>'
        )
    return packed.getvalue()


@pytest.fixture
def paragraph() -> Callable[..., str]:
    """Return a function that writes a paragraph's XML; `properties` goes into its `w:pPr`."""

    def make(text: str, properties: str = "") -> str:
        run = f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'
        return f"<w:p><w:pPr>{properties}</w:pPr>{run}</w:p>"

    return make


@pytest.fixture(scope="session")
def samples() -> list[dict[str, object]]:
    """Return the table of sample files."""
    return json.loads((Path(__file__).parents[1] / "files" / "samples.json").read_text("utf-8"))


class FetchStage:
    """Services with a collection, and one URL of the site that becomes its document `a`."""

    def __init__(self, services: Services, site: Any) -> None:
        self.services, self.site = services, site
        self.url = f"http://127.0.0.1:{site.port}/leave"
        self.collection: Collection = create_collection(
            services.ingestion, "c", title=None, description=None, settings={}
        )

    def page(self, text: str, **headers: str) -> None:
        self.site.pages["/leave"] = self.site.Page(
            f"<p>{text}</p>".encode(), headers={"Content-Type": "text/html; charset=utf-8", **headers}
        )

    def fetch(self, **more: Any) -> Job:
        return self.ended(self.accept(**more))

    def accept(self, **more: Any) -> Job:
        wanted = FetchRequest(**{"url": self.url, "document_id": "a", **more})
        job = accept_fetch(self.services.ingestion, self.collection, wanted).job
        assert job is not None
        return job

    def refresh(self) -> Job:
        source = self.source
        assert source is not None
        return self.ended(queue_refresh(self.services.ingestion, self.collection, source))

    def ended(self, job: Job) -> Job:
        job = self.services.jobs.wait(job.id, timeout=60)
        assert job.is_finished
        return job

    @property
    def document(self) -> Document | None:
        with self.services.opened.get(self.collection.id) as opened:
            return opened.store.document("a")

    @property
    def text(self) -> str:
        with self.services.opened.get(self.collection.id) as opened:
            return opened.store.text("a", 0, None).strip()

    @property
    def source(self) -> Source | None:
        return self.services.ingestion.sources.of_document(self.collection.id, "a")

    @staticmethod
    def outcome(job: Job) -> tuple[str, int]:
        """Return what a job that succeeded made, and how many chunks it embedded."""
        assert (job.state, job.error) == ("succeeded", None)
        assert job.result is not None
        return job.result["outcome"], job.result["chunks"]["embedded"]

    @staticmethod
    def failure(job: Job) -> str:
        """Return the code of the error that a job met."""
        assert job.state == "failed"
        assert job.error is not None
        return str(job.error["code"])


@pytest.fixture
def fetch_stage(tmp_path: Path, site: Any) -> Iterator[Callable[..., FetchStage]]:
    """Return a function that makes services of their own, without a worker; its arguments are settings."""
    with ExitStack() as stack:

        def make(**more: Any) -> FetchStage:
            folder = tmp_path / f"data{len(list(tmp_path.iterdir()))}"
            given = {"data": folder, "embedder": "hashed", "admin_key": "fetch-tests-admin-key", "fetch": True}
            services = build_services(Settings(**{**given, "fetch_allowed_networks": "127.0.0.1/32", **more}))
            stack.callback(services.close)
            return FetchStage(services, site)

        yield make


@pytest.fixture
def idle(fetch_stage: Callable[..., FetchStage]) -> FetchStage:
    """Services that may fetch from the site, without a worker."""
    return fetch_stage()


@pytest.fixture
def stage(idle: FetchStage) -> Iterator[FetchStage]:
    """The same with a worker running."""
    with Worker(idle.services, warms_up=False).running():
        yield idle
