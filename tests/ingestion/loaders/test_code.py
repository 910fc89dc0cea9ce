import pytest

from app.errors import EmptyDocument

SAMPLES = [
    ("a.py", "python", "import os\n\nclass A:\n    def f(self): ...\n\nasync def g(): ...\n", ["1 A", "2 f", "1 g"]),
    ("a.ts", "typescript", "export default class A {\n}\nexport async function f<T>(a: T) {}\n", ["1 A", "1 f"]),
    ("a.tsx", "tsx", "interface Props {}\nfunction View() {}\n", ["1 Props", "1 View"]),
    ("a.js", "javascript", "export function* walk() {}\n", ["1 walk"]),
    ("a.go", "go", "func (s *Server) Run() error {\n}\ntype Server struct {}\n", ["1 Run", "1 Server"]),
    ("a.rs", "rust", "pub(crate) fn f() {}\nimpl<T> Tree {\n    fn g() {}\n}\n", ["1 f", "1 Tree", "2 g"]),
    ("a.java", "java", "public final class A {\n  interface B {}\n}\n", ["1 A", "2 B"]),
    ("a.c", "c", "static int\nunused;\nint main(int argc,\n  char **argv)\n{\n  return f(x);\n}\n", ["1 main"]),
    ("a.cpp", "cpp", "namespace n {\n}\nvoid A::run(int x) {\n}\n", ["1 n", "1 A::run"]),
    ("a.cs", "c_sharp", "namespace N.M;\npublic record R(int X);\n", ["1 N.M", "1 R"]),
    (
        "a.sql",
        "sql",
        "create table if not exists people (id int);\nCREATE OR REPLACE VIEW v AS x;\n",
        ["1 people", "1 v"],
    ),
    ("a.sh", "bash", "function deploy() {\n}\n", ["1 deploy"]),
    ("a.rb", "ruby", "module M\n  class C\n", ["1 M", "2 C"]),
    ("a.php", "php", "<?php\nfunction f() {}\n", ["1 f"]),
]


@pytest.mark.parametrize(("filename", "language", "text", "headings"), SAMPLES, ids=[row[0] for row in SAMPLES])
def test_code_stays_as_it_is_written_and_its_definitions_are_headings(load, filename, language, text, headings) -> None:
    extraction = load(text.encode(), filename)

    assert extraction.text == text
    assert extraction.source_type == "code"
    assert extraction.metadata == {"language": language}
    assert extraction.details == {"language": language}
    assert [f"{heading.level} {heading.title}" for heading in extraction.headings] == headings
    for heading in extraction.headings:
        assert heading.title in text[heading.start :].split("\n")[0]


def test_words_in_prose_are_no_definitions(load) -> None:
    assert load(b"# class of its own\nx = 'def f'\nreturn_type = 3\n", "a.py").headings == ()


def test_any_charset_is_read(load) -> None:
    assert load("# 客户的方案\nx = 1\n".encode("gb18030"), "a.py").encoding == "gb18030"


def test_blank_code_is_empty(load) -> None:
    with pytest.raises(EmptyDocument):
        load(b"\n\n", "a.py")


def test_long_lines_of_machine_made_code_are_read_in_time(load) -> None:
    data = b"var a=[" + b"f(1,2)," * 100_000 + b"];\n" + b"int x(" * 20_000

    assert len(load(data, "a.c").text) == len(data)
