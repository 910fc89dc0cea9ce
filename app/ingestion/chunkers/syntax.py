"""Find where code may be cut, by its tree-sitter grammar, within a bounded time whatever the code is."""

import importlib
import os
import resource
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache

from semantic_text_splitter import CodeSplitter

GRAMMARS: Mapping[str, tuple[str, str]] = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "c_sharp": ("tree_sitter_c_sharp", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}
"""The module and the function that give each language's grammar."""

SPLITTER_SECONDS = 5
"""Processor time that the splitter may take; half a megabyte that a person wrote takes less than two seconds."""

# Shorter code cannot be nested so deeply that the splitter takes long.
_SHORT = 1_000

_SPAN = struct.Struct("=QQ")


def syntactic_spans(text: str, language: str, capacity: int) -> list[tuple[int, int]] | None:
    """Return spans of whole statements and functions, each of up to `capacity` characters where they can be.

    `None` stands for code on which the splitter comes to no end: its time grows with the square of the depth of the
    syntax tree, or worse. Only the end of its process stops it, so it runs in a copy of this one.
    """
    splitter = CodeSplitter(_grammar(language), capacity)
    if len(text) <= _SHORT:
        return list(_spans(splitter, text))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _write_spans(splitter, text, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        written = file.read()
    _, status = os.waitpid(child, 0)
    return list(_SPAN.iter_unpack(written)) if status == 0 else None


def _write_spans(splitter: CodeSplitter, text: str, descriptor: int) -> None:
    """Write the spans and end this process, by the kernel's hand where it takes too long."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SPLITTER_SECONDS, SPLITTER_SECONDS))
        with os.fdopen(descriptor, "wb") as file:
            for span in _spans(splitter, text):
                file.write(_SPAN.pack(*span))
        os._exit(0)
    finally:
        os._exit(1)


def _spans(splitter: CodeSplitter, text: str) -> Iterator[tuple[int, int]]:
    return ((start, start + len(code)) for start, code in splitter.chunk_indices(text))


@lru_cache(maxsize=len(GRAMMARS))
def _grammar(language: str) -> object:
    module, function = GRAMMARS[language]
    grammar: object = getattr(importlib.import_module(module), function)()
    return grammar
