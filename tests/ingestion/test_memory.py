import ctypes
import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
from pathlib import Path
from app.ingestion.memory import give_back_free_memory, keep_arenas_few

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * {page}

keep_arenas_few()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
# Small enough for the heap, and the last one stays: the allocator keeps what is free below it.
blocks = [libc.malloc(60_000) for _ in range(1_000)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
for block in blocks[:-1]:
    libc.free(ctypes.c_void_p(block))
kept = resident()
give_back_free_memory()
print(kept - resident())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the allocator is not glibc's")
def test_what_is_free_goes_back_to_the_system() -> None:
    program = PROGRAM.format(page=os.sysconf("SC_PAGE_SIZE"))
    returned = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert int(returned.stdout) > 40_000_000


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.ingestion import memory

    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    memory.keep_arenas_few()
    memory.give_back_free_memory()
