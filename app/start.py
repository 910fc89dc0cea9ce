"""Start the command line, in a process whose memory stands in large pages.

A search reads some thousand places all over a hundred megabytes. In pages of 4 kB a quarter of its processor time went
by with looking up where those are, most of all in a virtual machine, where each is looked up twice.
"""

import os
import sys

_TUNABLES = "GLIBC_TUNABLES"
_LARGE_PAGES = "glibc.malloc.hugetlb"
"""The C library's setting that asks the kernel for pages of 2 MB; another C library passes it over."""
_BEGUN_AGAIN = "_FOOTNOTE_BEGUN_AGAIN"
"""Names the process that did so: the setting itself is taken from a program whose file gives it more rights."""


def restart_in_large_pages() -> None:
    """Begin this program again with the setting, which is only read at the start; return where it was made already."""
    tunables, process = os.environ.get(_TUNABLES, ""), str(os.getpid())
    if sys.platform != "linux" or _LARGE_PAGES in tunables or os.environ.get(_BEGUN_AGAIN) == process:
        return
    os.environ[_BEGUN_AGAIN] = process
    os.environ[_TUNABLES] = f"{tunables}:{_LARGE_PAGES}=1".lstrip(":")
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606


def main() -> None:
    """Run the command line."""
    restart_in_large_pages()
    # What takes a second to import is imported once.
    from app.cli import app

    app()
