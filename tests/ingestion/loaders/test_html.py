import pytest

from app.errors import DocumentLimitExceeded, EmptyDocument

FILLER = "<p>" + "The council met on Tuesday and agreed on the budget for the coming year. " * 4 + "</p>"


def page(body: str, head: str = "<title>A page</title>") -> bytes:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()


def test_scripts_styles_navigation_and_hidden_parts_are_dropped(load) -> None:
    body = (
        "<script>var SCRIPT=1</script><style>.STYLE{}</style><noscript>NOSCRIPT</noscript>"
        "<nav><a>NAV</a></nav><div class='main sidebar'>SIDEBAR</div><div id=footer>FOOTER</div>"
        "<div role=navigation>ROLE</div><template>TEMPLATE</template><p hidden>HIDDEN</p>"
        "<p style='display: none'>STYLED</p><span aria-hidden=true>ARIA</span><form>FORM <input value=INPUT></form>"
        f"<!-- COMMENT --><p>kept <b>bold</b> text</p>{FILLER}<aside>ASIDE</aside><footer>FOOT</footer>"
    )
    text = load(page(body), "a.html").text

    assert text.startswith("kept bold text\n\nThe council")
    assert not any(word.isupper() and len(word) > 2 for word in text.split())


def test_a_main_element_that_holds_most_of_the_text_is_the_text(load) -> None:
    assert "around" not in load(page(f"<div>around</div><main><h1>M</h1>{FILLER}</main>"), "a.html").text


def test_a_small_main_element_does_not_hide_the_rest(load) -> None:
    assert "council" in load(page(f"<main>loading</main>{FILLER}"), "a.html").text


def test_a_page_inside_one_form_is_read(load) -> None:
    assert "council" in load(page(f"<form>{FILLER}</form>"), "a.html").text


def test_headings_and_title_are_told_with_their_places(load) -> None:
    extraction = load(page(f"<h1>One</h1>{FILLER}<h2>Two <i>and</i> a half</h2>{FILLER}"), "a.html")

    assert extraction.title == "A page"
    assert [(heading.level, heading.title) for heading in extraction.headings] == [(1, "One"), (2, "Two and a half")]
    for heading in extraction.headings:
        assert extraction.text[heading.start :].startswith(heading.title + "\n\n")


def test_lists_and_tables_stay_legible(load) -> None:
    body = (
        "<p>Before</p><ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul><ol><li>first</li><li>second</li></ol>"
        "<table><caption>Ducks</caption><tr><th>Name</th><th>Home</th></tr>"
        "<tr><td>Teal</td><td>Ponds,<br>lakes</td></tr><tr><td>Mallard</td><td></td></tr></table><p>After</p>"
    )

    assert load(page(body), "a.html").text == (
        "Before\n\n- one\n  - inner\n- two\n\n1. first\n2. second\n\n"
        "Ducks\nName | Home\nTeal | Ponds, lakes\nMallard |\n\nAfter"
    ).replace("Mallard |\n", "Mallard | \n")


def test_a_layout_table_reads_as_its_parts(load) -> None:
    body = "<table><tr><td><table><tr><td>a</td><td>b</td></tr></table></td><td><h2>H</h2>text</td></tr></table>"

    assert load(page(body), "a.html").text == "a | b\n\nH\n\ntext"


def test_preformatted_text_keeps_its_lines_and_inline_text_does_not(load) -> None:
    assert load(page("<pre>a\n  b<br>c</pre><p>x\n   y<br>z</p>"), "a.html").text == "a\n  b\nc\n\nx y\nz"


@pytest.mark.parametrize(
    "data",
    [
        "<html><head><meta charset=gb2312></head><p>客户".encode("gbk"),
        "<html><head><meta charset=latin-1></head><p>客户的部署方案".encode(),
        "\ufeff<html><p>客户".encode("utf-16-le"),
        "<html><p>我们和客户讨论了部署方案".encode("gbk"),
    ],
    ids=["declared", "utf-8 whatever is declared", "byte order mark", "undeclared"],
)
def test_the_charset_is_found(load, data: bytes) -> None:
    assert "客户" in load(data, "a.html").text


def test_controls_and_references_to_them_do_no_harm(load) -> None:
    body = "<p>a\x01b&#2;c<script>x</script>\x03</p><table><tr><td>d&#4;<br>\x05e</td><td>f</td></tr></table>"

    assert "f" in load(page(body), "a.html").text


def test_deep_nesting_ends(load) -> None:
    assert "deep" in load(page("<div>" * 1500 + "deep" + "</div>" * 1500), "a.html").text


def test_what_stands_after_elements_nested_too_deep_is_never_lost_in_silence(load) -> None:
    with pytest.raises(DocumentLimitExceeded):
        load(page("<p>before</p>" + "<div>" * 5000 + "deep" + "</div>" * 5000 + "<p>after</p>"), "a.html")


@pytest.mark.parametrize("body", ["", "<script>x</script>", "<p> &nbsp; </p>"])
def test_a_page_without_text_is_an_empty_document(load, body: str) -> None:
    with pytest.raises(EmptyDocument):
        load(page(body, head=""), "a.html")
