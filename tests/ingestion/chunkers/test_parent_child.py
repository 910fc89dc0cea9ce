import pytest

from app.domain import ChunkingOptions
from app.ingestion.chunkers.parent_child import chunk_parents_and_children

PARAGRAPHS = [f"Paragraph {n} begins." + " It says something of interest." * 12 for n in range(6)]
TEXT = "# One\n\n" + "\n\n".join(PARAGRAPHS[:3]) + "\n\n# Two\n\n" + "\n\n".join(PARAGRAPHS[3:])


@pytest.fixture
def chunk(markdown, count_tokens):
    def cut(text, **options):
        chunks = list(chunk_parents_and_children(markdown(text), ChunkingOptions(**options), count_tokens, 512))
        children = [one for one in chunks if one.kind == "child"]
        assert chunks[: len(children)] == children
        return children, chunks[len(children) :]

    return cut


def test_a_paragraph_is_a_parent_and_a_heading_goes_with_its_first(chunk):
    children, parents = chunk(TEXT, size=150, mode="paragraph")
    assert [one.text for one in parents] == [
        f"# {'One' if n == 0 else 'Two'}\n\n{text}" if n in (0, 3) else text for n, text in enumerate(PARAGRAPHS)
    ]
    assert all(len(one.text) <= 150 for one in children)


def test_a_section_is_a_parent(chunk):
    _, parents = chunk(TEXT, size=150, mode="heading", parent_size=5000)
    assert [one.heading_path for one in parents] == [("One",), ("Two",)]
    assert "\n\n".join(one.text for one in parents) == TEXT.strip()


def test_parents_of_a_fixed_size_pay_no_heed_to_headings(chunk):
    _, parents = chunk(TEXT, size=150, mode="fixed", parent_size=1500)
    assert len(parents) < 6
    assert all(len(one.text) <= 1500 for one in parents)
    assert any("# Two" in one.text and not one.text.startswith("# Two") for one in parents)


def test_the_whole_document_is_a_parent_whatever_the_window(chunk):
    children, parents = chunk(TEXT * 10, size=150, mode="document")
    assert [one.text for one in parents] == [(TEXT * 10).strip()]
    assert {one.parent for one in children} == {len(children)}
    assert {one.heading_path for one in children} >= {("One",), ("Two",)}


def test_a_long_paragraph_is_several_parents(chunk):
    _, parents = chunk("word " * 1000, size=150, mode="paragraph", parent_size=1000)
    assert len(parents) > 4
    assert all(len(one.text) <= 1000 for one in parents)


@pytest.mark.parametrize("mode", ["paragraph", "heading", "fixed", "document"])
def test_a_short_text_is_one_child_of_one_parent(chunk, mode):
    children, parents = chunk("# A\n\nOne.\n\n# B\n\nTwo.", mode=mode, size=400)
    assert [(one.start, one.end) for one in children] == [(one.start, one.end) for one in parents]
    assert len(children) == 1
