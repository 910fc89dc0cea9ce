"""Clean what a loader gives before it is cut: what only the page made goes, and every word stays. Decision 0009.

The cleaned text is the document's canonical text; pages and headings are carried over to the same words.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.domain import Extraction, NormalisationOptions
from app.ingestion.cleaning_breaks import leader_edits, line_break_edits
from app.ingestion.cleaning_edits import Edit, edited
from app.ingestion.cleaning_hyphens import Hyphenation, soft_hyphen_edits
from app.ingestion.cleaning_repeated import RepeatedLine, repeated_lines

_SET_IN_LINES = frozenset({"pdf", "image"})
"""Kinds of which each line is a line of print."""
_WRITTEN_AS_IT_IS = frozenset({"text", "markdown", "csv", "json", "jsonl", "code"})
"""Kinds of which a soft hyphen was written by whoever counts the text's characters."""
_SAMPLES = 20
_LONGEST_SAMPLE = 120


def clean(extraction: Extraction, options: NormalisationOptions) -> Extraction:
    """Return the extraction cleaned, with what was done in its report under `cleaning`."""
    report: dict[str, Any] = {}
    if extraction.pages and options.repeated_lines != "keep":
        repetition = repeated_lines(extraction)
        extraction = edited(extraction, repetition.edits)
        report |= {"lines_removed": repetition.removed, "repeated_lines": _samples(repetition.lines)}
    edits = [*_break_edits(extraction, options, report), *_hyphen_edits(extraction, options, report)]
    extraction = edited(extraction, edits)
    done = {name: value for name, value in report.items() if value}
    return replace(extraction, details={**extraction.details, "cleaning": done}) if done else extraction


def _samples(lines: tuple[RepeatedLine, ...]) -> list[Mapping[str, Any]]:
    return [{"text": line.text[:_LONGEST_SAMPLE], "pages": line.pages} for line in lines[:_SAMPLES]]


def _break_edits(extraction: Extraction, options: NormalisationOptions, report: dict[str, Any]) -> list[Edit]:
    spans = [(page.start, page.end) for page in extraction.pages]
    leaders = [] if options.repeated_lines == "keep" else list(leader_edits(extraction.text, spans))
    breaks: list[Edit] = []
    if _applies(options.line_breaks, extraction):
        headings = frozenset(heading.start for heading in extraction.headings)
        whole = [(0, len(extraction.text))]
        breaks = list(line_break_edits(extraction.text, spans or whole, headings))
    report |= {"leaders_shortened": len(leaders), "line_breaks_joined": len(breaks)}
    return leaders + breaks


def _hyphen_edits(extraction: Extraction, options: NormalisationOptions, report: dict[str, Any]) -> list[Edit]:
    if options.hyphens == "keep":
        return []
    edits: list[Edit] = []
    if _applies(options.hyphens, extraction):
        seams = list(Hyphenation(extraction.text).edits())
        edits = [seam.edit for seam in seams]
        report["hyphens_joined"] = sum(seam.is_joined for seam in seams)
        report["hyphens_kept"] = len(seams) - report["hyphens_joined"]
    elif options.hyphens == "auto" and extraction.source_type in _WRITTEN_AS_IT_IS:
        return []
    soft = list(soft_hyphen_edits(extraction.text, {edit.start for edit in edits}))
    report["soft_hyphens_removed"] = len(soft)
    return edits + soft


def _applies(choice: str, extraction: Extraction) -> bool:
    return choice == "join" or (choice == "auto" and extraction.source_type in _SET_IN_LINES)
