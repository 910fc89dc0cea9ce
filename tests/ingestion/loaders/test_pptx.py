import io
import zipfile
from collections.abc import Callable
from itertools import pairwise

import pytest

from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument, NoExtractableText

SPACES = " ".join(
    f'xmlns:{prefix}="http://schemas.openxmlformats.org/{name}"'
    for prefix, name in {
        "a": "drawingml/2006/main",
        "p": "presentationml/2006/main",
        "r": "officeDocument/2006/relationships",
        "c": "drawingml/2006/chart",
        "dgm": "drawingml/2006/diagram",
        "mc": "markup-compatibility/2006",
        "m": "officeDocument/2006/math",
    }.items()
)
KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relationships(*relations: tuple[str, str, str]) -> str:
    links = "".join(f'<Relationship Id="{id_}" Type="{KINDS}/{kind}" Target="{to}"/>' for id_, kind, to in relations)
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{links}</Relationships>'
    )


def shape(text: str, place: str = "body", properties: str = "") -> str:
    paragraphs = "".join(f"<a:p>{properties}<a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{place}"/></p:nvPr></p:nvSpPr><p:txBody>{paragraphs}</p:txBody></p:sp>'


def presentation(
    *slides: str, hidden: tuple[int, ...] = (), notes: dict[int, str] | None = None, **parts: str
) -> bytes:
    """Pack slides from the XML of their shapes; further parts are related to the first slide by their name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_rels/.rels", relationships(("main", "officeDocument", "ppt/presentation.xml")))
        numbers = range(1, len(slides) + 1)
        ids = "".join(f'<p:sldId r:id="s{number}"/>' for number in numbers)
        archive.writestr(
            "ppt/presentation.xml", f"<p:presentation {SPACES}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
        )
        links = [(f"s{number}", "slide", f"slides/slide{number}.xml") for number in numbers]
        archive.writestr("ppt/_rels/presentation.xml.rels", relationships(*links))
        for number, shapes in zip(numbers, slides, strict=True):
            show = ' show="0"' if number in hidden else ""
            tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
            archive.writestr(f"ppt/slides/slide{number}.xml", f"<p:sld {SPACES}{show}>{tree}</p:sld>")
            related = [(name, name, f"../{name}.xml") for name in parts] if number == 1 else []
            if notes and number in notes:
                related.append(("notes", "notesSlide", f"../notes{number}.xml"))
                archive.writestr(f"ppt/notes{number}.xml", f"<p:notes {SPACES}>{notes[number]}</p:notes>")
            archive.writestr(f"ppt/slides/_rels/slide{number}.xml.rels", relationships(*related))
        for name, inside in parts.items():
            archive.writestr(f"ppt/{name}.xml", inside)
    return packed.getvalue()


@pytest.fixture
def text_of(load) -> Callable[..., str]:
    return lambda *slides, **parts: load(presentation(*slides, **parts), "a.pptx").text


def test_slides_come_in_the_order_of_the_show_each_a_page_with_its_title_first(load) -> None:
    found = load(
        presentation(shape("body one") + shape("Title\none", "title"), shape("body two"), shape("Three", "ctrTitle")),
        "a.pptx",
    )

    assert found.text == "Title one\n\nbody one\n\nSlide 2\n\nbody two\n\nThree"
    assert [(heading.title, heading.start) for heading in found.headings] == [
        ("Title one", 0),
        ("Slide 2", 21),
        ("Three", 40),
    ]
    assert [found.text[page.start : page.end].split("\n")[0] for page in found.pages] == [
        "Title one",
        "Slide 2",
        "Three",
    ]
    assert all(before.end <= after.start for before, after in pairwise(found.pages))
    assert (found.title, found.coverage) == ("Title one", 1.0)


def test_notes_are_marked_as_notes(text_of) -> None:
    said = shape("say this") + shape("7", "sldNum")

    assert text_of(shape("A", "title"), notes={1: said}) == "A\n\nNotes: say this"


def test_hidden_slides_are_read_and_told(load) -> None:
    found = load(presentation(shape("seen"), shape("unseen"), hidden=(2,)), "a.pptx")

    assert "unseen" in found.text
    assert [(notice.code, notice.extra) for notice in found.warnings] == [("hidden_slides", {"pages": [2]})]


def test_slides_without_text_are_pages_without_text(load) -> None:
    found = load(presentation(shape("one"), "<p:pic/>", shape("three")), "a.pptx")

    assert [(page.number, page.start == page.end) for page in found.pages] == [(1, False), (2, True), (3, False)]
    assert [(notice.code, notice.extra) for notice in found.warnings] == [("pages_without_text", {"pages": [2]})]
    assert found.coverage == pytest.approx(2 / 3, abs=1e-4)


def test_groups_are_read_where_they_stand(text_of) -> None:
    group = f"<p:grpSp><p:grpSpPr/>{shape('in')}<p:grpSp>{shape('deeper')}</p:grpSp></p:grpSp>"

    assert text_of(shape("T", "title") + shape("before") + group + shape("after")) == (
        "T\n\nbefore\n\nin\n\ndeeper\n\nafter"
    )


def test_page_numbers_and_dates_are_out_and_a_footer_is_said_once(text_of) -> None:
    foot = shape("3", "sldNum") + shape("1.2.2026", "dt") + shape("Confidential", "ftr")

    assert text_of(shape("A", "title") + foot, shape("B", "title") + foot) == "A\n\nConfidential\n\nB"


def test_bullets_numbers_and_levels_are_written(text_of) -> None:
    properties = {"bullet": "<a:buChar/>", "number": '<a:buAutoNum startAt="4"/>', "plain": "", "none": "<a:buNone/>"}
    paragraphs = "".join(
        f'<a:p><a:pPr lvl="{level}">{properties[kind]}</a:pPr><a:r><a:t>{kind}</a:t></a:r></a:p>'
        for kind, level in [("number", 0), ("bullet", 1), ("number", 0), ("none", 1), ("plain", 0), ("number", 0)]
    )
    body = f"<p:sp><p:txBody>{paragraphs}</p:txBody></p:sp>"

    assert text_of(shape("T", "title") + body) == ("T\n\n4. number\n  - bullet\n5. number\n  none\nplain\n4. number")


def test_a_table_reads_row_by_row_with_merged_cells_filled(text_of) -> None:
    def cell(text: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = [
        cell("Region", 'rowSpan="2"') + cell("2026", 'gridSpan="2"') + cell("", 'hMerge="1"'),
        cell("", 'vMerge="1"') + cell("Q1") + cell("Q2"),
    ]
    table = "<a:tbl>" + "".join(f"<a:tr>{row}</a:tr>" for row in rows) + "</a:tbl>"

    assert text_of(f"{shape('T', 'title')}<p:graphicFrame>{table}</p:graphicFrame>") == (
        "T\n\nRegion | 2026 | 2026\nRegion | Q1 | Q2"
    )


def points(name: str, *values: str) -> str:
    inside = "".join(f'<c:pt idx="{place}"><c:v>{value}</c:v></c:pt>' for place, value in enumerate(values))
    return f"<c:{name}><c:strRef><c:strCache>{inside}</c:strCache></c:strRef></c:{name}>"


def test_a_chart_gives_its_title_and_its_data(text_of) -> None:
    title = "<c:title><c:tx><c:rich><a:p><a:r><a:t>Ducks</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    series = [
        f"<c:ser>{points('tx', name)}{points('cat', '2025', '2026')}{points('val', *values)}</c:ser>"
        for name, values in [("Wild", ("120", "130")), ("Tame", ("7",))]
    ]
    chart = f"<c:chartSpace {SPACES}>{title}{''.join(series)}</c:chartSpace>"
    frame = '<p:graphicFrame><c:chart r:id="chart"/></p:graphicFrame>'

    assert text_of(shape("T", "title") + frame, chart=chart) == (
        "T\n\nDucks\n| Wild | Tame\n2025 | 120 | 7\n2026 | 130 | "
    )


def test_a_diagram_gives_its_texts(text_of) -> None:
    steps = "".join(f"<dgm:pt><dgm:t><a:p><a:r><a:t>{step}</a:t></a:r></a:p></dgm:t></dgm:pt>" for step in "AB")
    diagram = f"<dgm:dataModel {SPACES}>{steps}</dgm:dataModel>"
    frame = '<p:graphicFrame><dgm:relIds r:dm="diagramData"/></p:graphicFrame>'

    assert text_of(shape("T", "title") + frame, diagramData=diagram) == "T\n\nA\nB"


def test_the_description_of_a_picture_is_read(text_of) -> None:
    picture = '<p:pic><p:nvPicPr><p:cNvPr descr="A red  barn"/></p:nvPicPr></p:pic>'

    assert text_of(shape("T", "title") + picture) == "T\n\nA red barn"


def test_of_two_renditions_one_is_read(text_of) -> None:
    new, old = f"<mc:Choice>{shape('new')}</mc:Choice>", f"<mc:Fallback>{shape('old')}</mc:Fallback>"
    both = f"<mc:AlternateContent>{new}{old}</mc:AlternateContent>"
    only_old = f"<mc:AlternateContent><mc:Choice/>{old}</mc:AlternateContent>"

    assert text_of(shape("T", "title") + both + only_old) == "T\n\nnew\n\nold"


def test_breaks_fields_and_formulas_are_read_in_their_line(text_of) -> None:
    formula = (
        "<mc:AlternateContent><mc:Choice><m:oMath><m:r><m:t>x=1</m:t></m:r></m:oMath></mc:Choice></mc:AlternateContent>"
    )
    line = (
        '<a:r><a:t>one</a:t></a:r><a:br/><a:fld type="datetime"><a:t>today</a:t></a:fld>'
        '<a:fld type="slidenum"><a:t>9</a:t></a:fld>'
    )

    assert text_of(f"<p:sp><p:txBody><a:p>{line}{formula}</a:p></p:txBody></p:sp>") == "Slide 1\n\none\ntodayx=1"


def test_a_slide_that_is_not_there_or_broken_is_a_page_without_text_and_told(load) -> None:
    data = presentation(shape("one"), "<broken", shape("three")).replace(b"slides/slide1.xml", b"slides/slideX.xml")

    found = load(data, "a.pptx")

    assert found.text == "Slide 3\n\nthree"
    assert [page.number for page in found.pages] == [1, 2, 3]
    assert [(notice.code, notice.extra) for notice in found.warnings] == [
        ("slides_not_read", {"pages": [1, 2]}),
        ("pages_without_text", {"pages": [1, 2]}),
    ]
    with pytest.raises(DamagedDocument):
        load(presentation("<broken"), "a.pptx")


def test_a_broken_chart_costs_only_itself(load) -> None:
    frame = '<p:graphicFrame><c:chart r:id="chart"/></p:graphicFrame>'

    found = load(presentation(shape("T", "title") + frame + shape("after"), chart="<broken"), "a.pptx")

    assert found.text == "T\n\nafter"
    assert [(notice.code, notice.extra) for notice in found.warnings] == [("slides_not_read", {"pages": [1]})]


def test_the_strict_variant_is_read(load) -> None:
    strict = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(presentation(shape("strictly")))) as given, zipfile.ZipFile(strict, "w") as out:
        for name in given.namelist():
            data = given.read(name).replace(b"schemas.openxmlformats.org/", b"purl.oclc.org/ooxml/")
            out.writestr(name, data.replace(b"/2006/", b"/"))

    assert load(strict.getvalue(), "a.pptx").text == "Slide 1\n\nstrictly"


def test_pictures_only_have_no_extractable_text(load) -> None:
    with pytest.raises(NoExtractableText, match="pictures"):
        load(presentation("<p:pic/>"), "a.pptx")


def test_a_presentation_that_says_nothing_is_empty(load) -> None:
    with pytest.raises(EmptyDocument):
        load(presentation(shape(" ")), "a.pptx")


def test_too_many_slides_are_over_the_limit_that_is_named(load) -> None:
    with pytest.raises(DocumentLimitExceeded) as caught:
        load(presentation(*[shape("x")] * 4), "a.pptx", limits={"max_pages": 3})
    assert "FOOTNOTE_MAX_PAGES" in (caught.value.hint or "")


def test_a_slide_that_unpacks_to_a_bomb_is_over_the_limit(load) -> None:
    data = presentation(shape(" " * 30_000_000))

    assert len(data) < 100_000
    with pytest.raises(DocumentLimitExceeded) as caught:
        load(data, "a.pptx", limits={"parse_memory_bytes": 200_000_000})
    assert "FOOTNOTE_PARSE_MEMORY_BYTES" in (caught.value.hint or "")


@pytest.mark.parametrize("times", [60, 300])
def test_groups_in_groups_are_read_or_over_the_limit(load, times: int) -> None:
    data = presentation("<p:grpSp>" * times + shape("deep") + "</p:grpSp>" * times)

    if times == 60:
        assert "deep" in load(data, "a.pptx").text
    else:
        with pytest.raises(DocumentLimitExceeded, match="nested"):
            load(data, "a.pptx")


def test_what_is_no_presentation_inside_is_damaged(load) -> None:
    for wrong in (b"presentation.xml", b"p:presentation "):
        broken = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(presentation(shape("x")))) as given, zipfile.ZipFile(broken, "w") as out:
            for name in given.namelist():
                renamed = name.replace("ppt/presentation.xml", "ppt/other.xml") if wrong[:2] == b"pr" else name
                out.writestr(renamed, given.read(name).replace(b"p:presentation", b"p:other"))
        with pytest.raises(DamagedDocument):
            load(broken.getvalue(), "a.pptx")
