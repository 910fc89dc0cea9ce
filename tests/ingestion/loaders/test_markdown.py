import pytest

from app.ingestion.loaders.markdown import headings


def test_a_fenced_hash_is_no_heading(load) -> None:
    text = "# A\n\nintro\n\n```sh\n# not a heading\n```\n\n# B\n\nend\n"
    extraction = load(text.encode(), "a.md")

    assert [(heading.level, heading.title) for heading in extraction.headings] == [(1, "A"), (1, "B")]
    assert [extraction.text[heading.start :].split("\n")[0] for heading in extraction.headings] == ["# A", "# B"]


def test_headings_are_told_without_their_markup() -> None:
    text = "Setext *one*\n===\n\n## `code` & [link](x) ##\n\n> # quoted\n\n- # listed\n\n###### deep\n"

    assert [(heading.level, heading.title) for heading in headings(text)] == [
        (1, "Setext one"),
        (2, "code & link"),
        (6, "deep"),
    ]


def test_yaml_front_matter_becomes_metadata_and_title(load) -> None:
    front = "---\ntitle: Leave policy\nteam: hr\nyear: 2026\ndraft: false\nsince: 2024-02-01\n"
    front += "tags: [a, b]\nowner:\n  name: Ann\n---\n"
    extraction = load((front + "\n# Leave\n\ntext\n").encode(), "a.md")

    assert extraction.text == "# Leave\n\ntext\n"
    assert extraction.title == "Leave policy"
    assert extraction.metadata == {
        "team": "hr",
        "year": 2026,
        "draft": False,
        "since": "2024-02-01",
        "tags": ["a", "b"],
        "owner.name": "Ann",
    }
    assert extraction.headings[0].start == 0


def test_a_description_in_the_front_matter_is_the_first_paragraph(load) -> None:
    extraction = load("---\ndescription: 模型能够自主推理\n---\n\n# 配置\n".encode(), "a.mdx")

    assert extraction.text == "模型能够自主推理\n\n# 配置\n"
    assert extraction.text[extraction.headings[0].start :] == "# 配置\n"


@pytest.mark.parametrize(
    "front",
    [
        '{"title": "T", "n": 1}\n',
        ';;;\n{"title": "T", "n": 1}\n;;;\n',
        '+++\ntitle = "T"\nn = 1\n+++\n',
        '---\n{"title": "T", "n": 1}\n---\n',
    ],
)
def test_front_matter_may_be_json_or_toml(load, front: str) -> None:
    extraction = load((front + "body").encode(), "a.md")

    assert (extraction.title, extraction.metadata, extraction.text) == ("T", {"n": 1}, "body")


def test_the_first_heading_is_the_title_where_nothing_else_says_one(load) -> None:
    assert load(b"text\n\n## Two\n\n# One\n", "a.md").title == "One"


@pytest.mark.parametrize(
    "text", ["---\n\nA rule, not front matter.\n\n---\n", "---\nno colon here\n---\nbody\n", "{curly} text"]
)
def test_what_only_looks_like_front_matter_stays_in_the_text(load, text: str) -> None:
    extraction = load(text.encode(), "a.md")

    assert (extraction.text, extraction.metadata, extraction.warnings) == (text, {}, ())


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: [unclosed\n---\n",
        "---\na: &a [x, x, x, x, x, x, x, x]\n"
        + "".join(f"b{n}: &b{n} [*a, *a, *a, *a, *a, *a, *a, *a]\n" for n in range(40))
        + "---\n",
        "---\n" + "[" * 3000 + "\n---\n",
    ],
    ids=["not yaml", "multiplying aliases", "deeply nested"],
)
def test_front_matter_that_cannot_be_read_stays_in_the_text_with_a_warning(load, front: str) -> None:
    extraction = load((front + "body\n").encode(), "a.md")

    assert extraction.text == front + "body\n"
    assert [warning.code for warning in extraction.warnings] == ["front_matter_not_read"]


def test_unstorable_characters_in_front_matter_are_cleaned(load) -> None:
    extraction = load(b'---\nname: "a\\0b"\n---\nbody\n', "a.md")

    assert extraction.metadata == {"name": "ab"}
