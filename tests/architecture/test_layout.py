"""How files are named, how long they are, and what a room's `__init__` may hold."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
APP = sorted((ROOT / "app").rglob("*.py"))
EVERYTHING = sorted(
    file for room in ("app", "tests", "migrations", "benchmarks") for file in (ROOT / room).rglob("*.py")
)
LONGEST_FILE = 400
DEEPEST = 3
BANNED = re.compile(r"utils?|helpers?|common|shared|core|base|misc|manager|handler|processor")


def places(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in files]


def only_a_docstring(file: Path) -> bool:
    statements = ast.parse(file.read_text(encoding="utf-8")).body
    return (
        len(statements) == 1 and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant)
    )


def test_files_stay_short() -> None:
    long = [file for file in EVERYTHING if len(file.read_text(encoding="utf-8").splitlines()) > LONGEST_FILE]
    assert places(long) == []


def test_names_say_what_is_inside() -> None:
    parts = {file: file.relative_to(ROOT).with_suffix("").parts for file in APP}
    vague = [
        file
        for file, names in parts.items()
        if any(BANNED.fullmatch(word) for name in names for word in name.split("_"))
    ]
    assert places(vague) == []


def test_rooms_are_no_deeper_than_room_shelf_file() -> None:
    assert places([file for file in APP if len(file.relative_to(ROOT / "app").parts) > DEEPEST]) == []


def test_every_room_has_an_init_that_only_says_what_happens_there() -> None:
    folders = {file.parent for file in APP}
    without = [folder for folder in folders if not (folder / "__init__.py").is_file()]
    assert places(without) == []
    assert places([file for file in APP if file.name == "__init__.py" and not only_a_docstring(file)]) == []
