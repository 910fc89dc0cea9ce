from itertools import pairwise

import pytest

from app.domain import ChunkingOptions
from app.ingestion.chunkers.markdown import chunk_by_headings

WINDOW = 512
ROWS = "| name | value |\n|---|---|\n" + "".join(f"| row {n} | {n * 7} |\n" for n in range(200))


@pytest.fixture
def chunk(count_tokens):
    def cut(extraction, window=WINDOW, **options):
        return list(chunk_by_headings(extraction, ChunkingOptions(**options), count_tokens, window))

    return cut


def outline(chunks):
    return [(chunk.heading_path, chunk.text) for chunk in chunks]


def test_a_hash_inside_a_fence_is_no_heading(chunk, markdown):
    chunks = chunk(markdown("# A\n\n```\n# not a heading\n```\n\n# B\n\nmore"))
    assert outline(chunks) == [(("A",), "# A\n\n```\n# not a heading\n```"), (("B",), "# B\n\nmore")]


def test_paths_lead_from_the_root(chunk, markdown):
    text = "before\n\n# A\na\n## B\nb\n#### C\nc\n## D *e* `f`\nd\n\nG\n=\ng\n"
    assert [path for path, _ in outline(chunk(markdown(text)))] == [
        (),
        ("A",),
        ("A", "B"),
        ("A", "B", "C"),
        ("A", "D e f"),
        ("G",),
    ]


def test_a_heading_alone_joins_what_follows(chunk, markdown):
    chunks = chunk(markdown("# Leave of absence\n\n## Parental\n\ntext\n\nEmpty\n-----\n\n## Sick\n\nmore"))
    assert outline(chunks) == [
        (("Leave of absence", "Parental"), "# Leave of absence\n\n## Parental\n\ntext"),
        (("Leave of absence", "Sick"), "Empty\n-----\n\n## Sick\n\nmore"),
    ]


def test_a_last_heading_alone_is_kept(chunk, markdown):
    assert outline(chunk(markdown("# A\n\ntext\n\n# B\n"))) == [(("A",), "# A\n\ntext"), (("B",), "# B")]


def test_headings_of_any_format_are_followed(chunk, plain):
    text = "Handbook\n\nLeave\n\nThirty days.\n\nPay\n\nMonthly."
    headings = [(1, "Handbook", 0), (2, "Leave", 10), (2, "Pay", 31)]
    assert outline(chunk(plain(text, headings=headings))) == [
        (("Handbook", "Leave"), "Handbook\n\nLeave\n\nThirty days."),
        (("Handbook", "Pay"), "Pay\n\nMonthly."),
    ]


def test_a_first_line_that_is_not_the_title_is_not_taken_for_a_heading_alone(chunk, plain):
    text = "A whole line of text that happens to stand where the outline points.\n\nOther text."
    chunks = chunk(plain(text, headings=[(1, "One", 0), (1, "Two", 70)]))
    assert [path for path, _ in outline(chunks)] == [("One",), ("Two",)]


def test_text_without_known_headings_is_read_as_markdown(chunk, plain):
    assert [path for path, _ in outline(chunk(plain("# A\na\n# B\nb")))] == [("A",), ("B",)]


def test_a_fence_stays_whole_with_the_sentence_before_it(chunk, markdown):
    fence = "```python\n" + "\n\n".join(f"def f{n}(): ..." for n in range(8)) + "\n```"
    text = f"# A\n\n{'Some words of prose. ' * 12}\n\nFor example:\n\n{fence}\n\n{'More words of prose. ' * 12}"
    chunks = chunk(markdown(text), size=300)
    assert [fence in one.text for one in chunks].count(True) == 1
    assert all(len(one.text) <= 300 for one in chunks)


def test_a_long_fence_is_cut_at_line_ends(chunk, markdown):
    lines = [f"line {n} of the code" for n in range(100)]
    chunks = chunk(markdown("# A\n\n```\n" + "\n".join(lines) + "\n```\n"), size=200)
    assert all(len(one.text) <= 200 for one in chunks)
    assert all(line in {*lines, "# A", "```", ""} for one in chunks for line in one.text.split("\n"))


def test_rows_parted_from_their_header_have_it_as_context(chunk, markdown):
    extraction = markdown(f"# Prices\n\n{ROWS}\nafter\n")
    chunks = chunk(extraction, size=300)
    assert len(chunks) > 10
    for one in chunks:
        assert len(one.text) <= 300
        assert extraction.text[one.start : one.end] == one.text
        rows = [line for line in one.text.split("\n") if line.startswith("| row")]
        assert all(row.endswith("|") for row in rows)
        if rows:
            assert "| name | value |\n|---|---|" in one.indexed_text
    assert sum(one.text.count("| row") for one in chunks) == 200


def test_a_table_that_fits_is_whole(chunk, markdown):
    table = ROWS[: ROWS.index("| row 5")]
    chunks = chunk(markdown(f"# A\n\n{'Prose. ' * 30}\n\n{table}\n\n{'Prose. ' * 30}"), size=250)
    assert any(table.strip() in one.text for one in chunks)
    assert not any(one.context for one in chunks)


def test_an_overlap_stays_inside_its_section(chunk, markdown):
    text = "# A\n\n" + "alpha beta gamma. " * 40 + "\n\n# B\n\n" + "delta epsilon zeta. " * 40
    chunks = chunk(markdown(text), size=200, overlap=50)
    second = text.index("# B")
    assert all(one.start >= second for one in chunks if one.heading_path == ("B",))
    overlaps = [before.end - after.start for before, after in pairwise(chunks)]
    assert sum(overlap > 0 for overlap in overlaps) == len(chunks) - 2
    assert max(overlaps) <= 50


def test_a_long_section_obeys_the_window(chunk, markdown):
    chunks = chunk(markdown("# A\n\n" + "今天讨论了部署方案。" * 300), size=10_000)
    assert all(one.token_count <= WINDOW - 4 for one in chunks)
    assert {one.heading_path for one in chunks} == {("A",)}
