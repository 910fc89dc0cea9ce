import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the setting")

TELL = """
import json, os, sys
from app.start import restart_in_large_pages
print("began", flush=True)
restart_in_large_pages()
print(json.dumps([os.environ.get("GLIBC_TUNABLES", ""), sys.argv[1:], os.getpid()]))
"""
# As the C library does it for a program whose file gives it more rights, such as that to listen on port 80.
WITHOUT_TUNABLES = f"import os; os.environ.pop('GLIBC_TUNABLES', None)\n{TELL}"


def started(*arguments: str, program: str = TELL, **environment: str) -> tuple[int, list[str]]:
    """Return how often the program began in its process, and the settings it had at last."""
    kept = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    process = subprocess.Popen(
        [sys.executable, "-X", "utf8", "-c", program, *arguments],
        env=kept | environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    *begun, told = output.splitlines()
    tunables, given, number = json.loads(told)
    assert number == process.pid
    assert given == list(arguments)
    return len(begun), tunables.split(":")


def test_a_program_begins_once_more_with_its_arguments_and_large_pages() -> None:
    assert started("a b", "--c", "") == (2, ["glibc.malloc.hugetlb=1"])


def test_settings_of_the_c_library_that_are_there_stay() -> None:
    given = "glibc.malloc.arena_max=4"
    assert started(GLIBC_TUNABLES=given) == (2, [given, "glibc.malloc.hugetlb=1"])


def test_who_chose_the_size_of_pages_keeps_it() -> None:
    given = "glibc.malloc.hugetlb=0"
    assert started(GLIBC_TUNABLES=given) == (1, [given])


def test_a_program_from_which_the_setting_is_taken_begins_only_once_more() -> None:
    assert started(program=WITHOUT_TUNABLES)[0] == 2
