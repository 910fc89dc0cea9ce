"""What only the pages made goes, every word of the body stays, and places stay at their words."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import Extraction, Heading, NormalisationOptions, Page
from app.ingestion.cleaning import clean

BODY = [
    "The committee met in spring and agreed on a budget for the years to\ncome, which the members had asked for.",
    "Nobody was told before summer that the roof of the old house would\nhave to be taken down entirely.",
    "Winter came early, so the works on the bridge across the river were\nstopped until the ice had gone.",
    "After that the village was quiet again for a long time and most of\nits people went about their work.",
]


def paged(pages: list[str], source_type: str = "pdf", headings: tuple[Heading, ...] = ()) -> Extraction:
    places, start = [], 0
    for number, page in enumerate(pages, 1):
        places.append(Page(number, start, start + len(page)))
        start += len(page) + 2
    return Extraction(
        text="\n\n".join(pages),
        parser="test",
        media_type="application/pdf",
        source_type=source_type,
        pages=tuple(places),
        headings=headings,
    )


def cleaned(pages: list[str], source_type: str = "pdf", **options: str) -> Extraction:
    return clean(paged(pages, source_type), NormalisationOptions(**options))


def page_texts(extraction: Extraction) -> list[str]:
    return [extraction.text[page.start : page.end] for page in extraction.pages]


def test_the_head_and_foot_of_every_page_stand_in_the_text_once_at_most() -> None:
    pages = [
        f"ACME Annual Report 2026\n{body}\nConfidential, for members only\nPage {number} of 4"
        for number, body in enumerate(BODY, 1)
    ]
    extraction = cleaned(pages, line_breaks="keep")

    assert extraction.text.count("ACME Annual Report") == 1
    assert extraction.text.count("Confidential") == 1
    assert extraction.text.count("Page ") == 1
    assert page_texts(extraction)[1:] == BODY[1:]
    assert extraction.details["cleaning"] == {
        "lines_removed": 9,
        "repeated_lines": [
            {"text": "ACME Annual Report 2026", "pages": 3},
            {"text": "Confidential, for members only", "pages": 3},
            {"text": "Page 1 of 4", "pages": 3},
        ],
    }


def test_a_slide_deck_loses_its_footers_and_keeps_its_lines() -> None:
    pages = [
        f"Slide title {letter}\n{body}\n© ACME 2026\n{n}"
        for n, (letter, body) in enumerate(zip("ABCD", BODY, strict=True), 1)
    ]
    extraction = cleaned(pages, "pptx")

    assert page_texts(extraction)[0] == f"Slide title A\n{BODY[0]}\n© ACME 2026"
    assert page_texts(extraction)[3] == f"Slide title D\n{BODY[3]}"


def test_heads_that_alternate_and_count_with_the_pages_go_and_bare_numbers_go_everywhere() -> None:
    body = BODY * 2
    pages = [
        f"{n + 9} THE BOOK\n{text}" if n % 2 else f"Chapter of rivers {n + 9}\n{text}" for n, text in enumerate(body, 1)
    ]
    assert page_texts(cleaned(pages, line_breaks="keep"))[2:] == body[2:]

    numbered = [f"{text}\n– {n + 100} –" for n, text in enumerate(body, 1)]
    assert page_texts(cleaned(numbered, line_breaks="keep")) == body

    roman = [f"{numeral}\n{text}" for numeral, text in zip(["iii", "iv", "v", "vi"], BODY, strict=True)]
    assert page_texts(cleaned(roman, line_breaks="keep")) == BODY


@pytest.mark.parametrize(
    "lines",
    [
        ["INV-1001", "INV-1002", "INV-1003", "INV-1004"],
        ["Question 1", "Question 2", "Question 3", "Question 4"],
        ["Total 17", "Total 52", "Total 9", "Total 33"],
        ["Anna", "Bo", "Cecilia", "David"],
        ["12", "7", "99", "3"],
    ],
)
def test_lines_that_differ_in_more_than_the_page_number_are_the_body(lines: list[str]) -> None:
    pages = [f"{line}\n{body}" for line, body in zip(lines, BODY, strict=True)]
    assert page_texts(cleaned(pages, line_breaks="keep")) == pages


def test_pages_that_are_all_the_same_are_text_and_no_heads() -> None:
    extraction = cleaned(["This page says one thing.\nAnd another."] * 5)
    assert extraction.text.count("one thing") == 5
    assert "cleaning" not in extraction.details


def test_a_repeated_line_that_carries_a_heading_stays() -> None:
    pages = [f"Results\n{body}" for body in BODY]
    start = paged(pages).pages[2].start
    extraction = clean(paged(pages, headings=(Heading(1, "Results", start),)), NormalisationOptions())

    assert page_texts(extraction)[2].startswith("Results\n")
    assert extraction.text[extraction.headings[0].start :].startswith("Results\nWinter")


def test_a_running_head_that_only_repeats_a_title_goes_from_every_page() -> None:
    pages = [f"The House by the River\n{BODY[0]}", *(f"{n} The House by the River\n{BODY[n - 1]}" for n in (2, 3, 4))]
    assert cleaned(pages, line_breaks="keep").text == "\n\n".join([pages[0], *BODY[1:]])


def test_margins_full_of_line_numbers_go() -> None:
    numbers = "\n".join(map(str, range(1, 26)))
    extraction = cleaned([f"{numbers}\n{body}" for body in BODY], line_breaks="keep")
    assert page_texts(extraction) == BODY


def test_dots_that_lead_to_a_page_number_are_shortened() -> None:
    extraction = cleaned(["Contents\nThe first chapter............ 4\nThe second . . . . . . . . 17\nEnd... 3"])
    assert extraction.text == "Contents\nThe first chapter … 4\nThe second … 17\nEnd... 3"
    assert extraction.details["cleaning"] == {"leaders_shortened": 2}


def test_lines_of_a_paragraph_become_one_and_paragraphs_stay_apart() -> None:
    text = (
        "3 Results\n"
        "We measured the time that every step of the process took and found it to\n"
        "depend on the load. The Department of Trade had asked for these figures in\n"
        "Norway and Sweden.\n"
        "• a list of things that should stay as it is\n"
        "• and that should not be joined with anything\n"
        "Name Anna Bo Cecilia\n"
        "The next paragraph begins here and goes on for as long as it has any words\n"
        "to say."
    )
    assert cleaned([text]).text == (
        "3 Results\n"
        "We measured the time that every step of the process took and found it to "
        "depend on the load. The Department of Trade had asked for these figures in "
        "Norway and Sweden.\n"
        "• a list of things that should stay as it is\n"
        "• and that should not be joined with anything\n"
        "Name Anna Bo Cecilia\n"
        "The next paragraph begins here and goes on for as long as it has any words "
        "to say."
    )


def test_lines_of_chinese_and_japanese_are_joined_without_a_space() -> None:
    lines = [
        "计算机网络空间本身就是非封闭性的，这一缺点无形之中增加了其被监听的可能，而且对网络",
        "的加密措施也没有引起足够的重视。",
        "第二段。",
    ]
    assert cleaned(["\n".join(lines)]).text == f"{lines[0]}{lines[1]}\n{lines[2]}"


@pytest.mark.parametrize(
    "text",
    [
        "Alabama 18,870 23,022 22,650 859 1,178 0 14 15 0 2,179\nalaska 209 3,062 3,209 191 184 0 9 3 0 100",
        "for (int i = 0; i < n; i++) { total += values[i]; }\nreturn total_of_all(values) / (double) n;",
        "Anna Maria Svensson Department of Northern Trade Oslo\nBo Erik Lindqvist Department of Southern Trade Rome",
        "우리는 오늘 회의에서 새로운 계획을 논의하고 다음 달까지 결과를 제출하\n기로 합의하였습니다",
    ],
)
def test_tables_code_names_and_lines_that_may_break_within_a_word_stay_as_they_are(text: str) -> None:
    assert cleaned([text]).text == text


def test_a_sentence_goes_on_over_the_edge_of_a_page() -> None:
    pages = [
        "She had lived in the house for many years when one of\nthe men came to tell her that the river would be\n7",
        "moved. She said nothing and shut the door, since there was nothing\nto be said about it any more.\n8",
        "A third page has its own words and so it only shows its number and\nnothing else.\n9",
    ]
    extraction = cleaned(pages)
    assert "that the river would be moved. She said nothing" in extraction.text
    assert page_texts(extraction)[1].startswith("moved. She said")


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("the govern\u00adment", "the government"),
        ("the govern-\nment", "the government"),
        ("SARS\u00adrelated", "SARS-related"),
        ("well\u00adknown, and well-known", "well-known, and well-known"),
        ("TraceMonkey is Trace\u00adMonkey", "TraceMonkey is TraceMonkey"),
        ("in 1950-\n2003 it", "in 1950-2003 it"),
        ("pre-\nand post-war", "pre- and post-war"),
        ("the thousand and the thous\u00adand", "the thousand and the thousand"),
        ("a marine and a system: marine\u00adsystem", "a marine and a system: marine-system"),
        ("commodity-by\u00adcommodity", "commodity-by-commodity"),
        ("see http://example.com/the-\nlonger-path", "see http://example.com/the-longer-path"),
        ("a dash -\nand more", "a dash -\nand more"),
        ("the rep-\n\nresentation", "the representation"),
        ("at the edge\u00ad\n\nTitle", "at the edge\n\nTitle"),
    ],
)
def test_broken_words_are_whole_again_and_compounds_keep_their_hyphen(broken: str, whole: str) -> None:
    assert cleaned([broken]).text == whole


def test_options_keep_what_they_name() -> None:
    pages = [f"Head of all\n{body}\nthe govern\u00adment" for body in BODY]
    kept = NormalisationOptions(repeated_lines="keep", hyphens="keep", line_breaks="keep")
    extraction = paged(pages)
    assert clean(extraction, kept) == extraction


@pytest.mark.parametrize(("source_type", "text"), [("html", "the government"), ("text", "the govern\u00adment")])
def test_soft_hyphens_go_but_not_from_texts_whose_characters_the_caller_counts(source_type: str, text: str) -> None:
    extraction = Extraction("the govern\u00adment", "test", "text/html", source_type)
    assert clean(extraction, NormalisationOptions()).text == text
    assert clean(extraction, NormalisationOptions(hyphens="join")).text == "the government"


def test_plain_text_is_unwrapped_only_where_that_is_asked_for() -> None:
    wrapped = Extraction(BODY[0], "text", "text/plain", "text")
    assert clean(wrapped, NormalisationOptions()) == wrapped
    assert clean(wrapped, NormalisationOptions(line_breaks="join")).text == BODY[0].replace("\n", " ")


WORDS = st.sampled_from(
    [
        "the",
        "river",
        "Anna",
        "12",
        "7",
        "con\u00adtent",
        "well-",
        "end.",
        "大数据时代",
        "网络。",
        "…",
        "....... 9",
        "•",
        "Page 3",
        "ﬁne",
        "😀",
        "e\u0301",
    ]
)
LINES = st.lists(WORDS, max_size=14).map(" ".join)
PAGES = st.lists(st.lists(LINES, max_size=6).map("\n".join), min_size=1, max_size=6)


@given(PAGES, st.booleans(), st.data())
def test_pages_headings_and_records_stay_at_their_words_and_only_page_furniture_goes(
    pages: list[str], with_head: bool, data: st.DataObject
) -> None:
    if with_head:
        pages = [f"Running head\n{page}\n{number}" for number, page in enumerate(pages, 1)]
    before = paged(pages)
    starts = data.draw(st.lists(st.integers(0, len(before.text)), max_size=4).map(sorted))
    before = Extraction(
        text=before.text,
        parser="test",
        media_type="application/pdf",
        source_type="pdf",
        pages=before.pages,
        headings=tuple(Heading(1, "x", start) for start in starts),
        records=tuple(starts),
    )
    after = clean(before, NormalisationOptions(repeated_lines="keep"))

    def said(text: str) -> str:
        return "".join(filter(str.isalnum, text))

    # Nothing that is readable is lost, and what stood before a place still does.
    assert said(after.text) == said(before.text)
    for old, new in zip(before.pages, after.pages, strict=True):
        assert said(after.text[: new.start]) == said(before.text[: old.start])
        assert said(after.text[: new.end]) == said(before.text[: old.end])
    for old, new in zip(starts, after.records, strict=True):
        assert said(after.text[:new]) == said(before.text[:old])
    assert [heading.start for heading in after.headings] == list(after.records)

    whole = clean(before, NormalisationOptions())
    assert whole.pages[0].start >= 0
    assert whole.pages[-1].end <= len(whole.text)
    assert all(page.start <= page.end for page in whole.pages)
    assert all(one.end <= two.start for one, two in itertools.pairwise(whole.pages))


def test_signs_around_a_page_number_do_not_hide_the_lines_behind_it() -> None:
    feet = ["One line of a foot", "Another line of it", "A third one", "A fourth one"]
    pages = ["\n".join([body, *feet, f"– – {n} – –"]) for n, body in enumerate(BODY, 1)]
    assert page_texts(cleaned(pages, line_breaks="keep"))[1:] == BODY[1:]
