import pytest

from app.domain import ChunkingOptions, Extraction, Heading
from app.ingestion.chunkers import syntax
from app.ingestion.chunkers.code import chunk_code
from app.ingestion.chunkers.syntax import GRAMMARS

FUNCTIONS = [
    f"def function_{n}(value):\n    total = 0\n    for i in range(value):\n        total += i * {n}\n    return total\n"
    for n in range(12)
]
SOURCE = "\n\n".join(FUNCTIONS)


@pytest.fixture
def told():
    return []


@pytest.fixture
def chunk(count_tokens, told):
    def cut(text, language=None, found="python", headings=(), **options):
        extraction = Extraction(
            text=text,
            parser="code",
            media_type="text/x-python",
            source_type="code",
            details={"language": found},
            headings=tuple(headings),
            tell=told.append,
        )
        return list(chunk_code(extraction, ChunkingOptions(language=language, **options), count_tokens, 512))

    return cut


@pytest.mark.parametrize(("language", "found"), [(None, "python"), ("python", "unheard")])
def test_functions_stay_whole(chunk, language, found):
    chunks = chunk(SOURCE, language, found, size=300)
    assert len(chunks) > 3
    for one in chunks:
        assert one.text.startswith("def function_")
        assert one.text.endswith("return total")


def test_the_first_line_of_a_class_goes_with_its_first_method(chunk):
    text = "class Report:\n" + "\n".join("    " + line for line in SOURCE.split("\n"))
    chunks = chunk(text, size=400)
    assert chunks[0].text.startswith("class Report:\n    def function_0")


def test_code_of_no_known_language_is_cut_between_lines(chunk):
    chunks = chunk(SOURCE, found="unheard", size=300)
    assert all(line in SOURCE.split("\n") for one in chunks for line in one.text.split("\n")[1:])


def test_a_chunk_names_the_function_it_is_inside(chunk):
    headings = [Heading(1, f"function_{n}", SOURCE.index(text)) for n, text in enumerate(FUNCTIONS)]
    chunks = chunk(SOURCE, headings=headings, size=150)
    assert [one.heading_path for one in chunks] == [(f"function_{n}",) for n in range(12)]


@pytest.mark.parametrize("language", GRAMMARS)
def test_every_grammar_is_there(chunk, language):
    text = "\n\n".join(f"void f{n}() {{\n  int x = {n};\n  g(x);\n}}" for n in range(40))
    chunks = chunk(text, language, size=200)
    assert all(len(one.text) <= 200 for one in chunks)
    assert "".join("".join(one.text for one in chunks).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "[" * 30_000 + "]" * 30_000),
        ("python", "1 + " * 30_000 + "1"),
        ("python", "not " * 30_000 + "x"),
        ("c", "if(a)\n" * 30_000),
        ("cpp", "A<" * 30_000),
    ],
)
def test_code_that_is_nested_endlessly_is_cut_between_lines_with_a_warning(chunk, told, monkeypatch, language, text):
    monkeypatch.setattr(syntax, "SPLITTER_SECONDS", 1)
    chunks = chunk(text, language, size=1000)
    assert "".join("".join(one.text for one in chunks).split()) == "".join(text.split())
    assert [notice.code for notice in told] == ["code_cut_between_lines"]
