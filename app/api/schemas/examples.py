"""Answers as examples for the specification; a test holds each against its schema."""

from typing import Any

_TIME = "2026-01-31T12:00:00Z"
_REQUEST_ID = "req_2f6c1d0b9a8e4f37c5d2"
_HASH = "9f2c3a41d05be6f7788990a1b2c3d4e5f6071829a0b1c2d3e4f5061728394a5b"
_ETAG = '"sha256-9f2c3a41d05be6f7788990a1b2c3d4e5f6071829"'

COLLECTION: dict[str, Any] = {
    "name": "handbook",
    "title": "Staff handbook",
    "description": "Rules and benefits",
    "embedding": {"model": "multilingual-e5-small"},
    "chunking": {"strategy": "auto", "size": 1200, "overlap": 0, "unit": "characters"},
    "normalisation": {"repeated_lines": "auto", "hyphens": "auto", "line_breaks": "auto"},
    "indexing": "standard",
    "contextualizer": "heading",
    "analysis": {
        "synonyms": [["PTO", "paid time off"], ["holiday", "vacation"]],
        "stop_words": ["handbook"],
        "language": "auto",
    },
    "defaults": {"top_k": 8},
    "instructions": "Answer in the language of the question.",
    "metadata_fields": ["team", "year"],
    "keep_versions": 3,
    "max_age_days": None,
    "quotas": {"documents": 1000, "document_bytes": 50_000_000},
    "query_log": {"enabled": True, "search_keys": False},
    "warnings": [],
    "created_at": _TIME,
    "updated_at": _TIME,
}

STATS: dict[str, Any] = {
    "documents": {"pending": 0, "processing": 0, "ready": 12, "failed": 0},
    "chunks": 512,
    "characters": 401_233,
    "revision": 540,
    "database_bytes": 3_145_728,
    "original_bytes": 1_048_576,
    "embedding": {"provider": "local", "model": "multilingual-e5-small", "dimensions": 384},
    "quotas": {"documents": {"limit": 1000, "used": 12}, "document_bytes": {"limit": 50_000_000, "used": None}},
}

_SUMMARY: dict[str, Any] = {
    "id": "leave-2026",
    "collection": "handbook",
    "state": "ready",
    "version": 1,
    "etag": _ETAG,
    "title": "Leave policy",
    "metadata": {"team": "hr", "year": 2026},
    "media_type": "text/markdown",
    "filename": None,
    "characters": 31_877,
    "chunks": {"total": 42},
    "extraction": {
        "parser": "markdown",
        "media_type": "text/markdown",
        "encoding": "utf-8",
        "pages": None,
        "characters": 31_877,
        "coverage": 1.0,
    },
    "warnings": [],
    "error": None,
    "created_at": _TIME,
    "updated_at": _TIME,
    "indexed_at": _TIME,
    "content_hash": _HASH,
    "expires_at": None,
    "chunking": None,
}

DOCUMENT: dict[str, Any] = _SUMMARY | {"timings_ms": {"total": 0.4}, "request_id": _REQUEST_ID}

SUBMITTED: dict[str, Any] = _SUMMARY | {
    "outcome": "created",
    "chunks": {"total": 42, "embedded": 42, "reused": 0},
    "duplicate_of": [],
    "timings_ms": {"load": 3.1, "chunk": 9.0, "embed": 842.5, "write": 12.2, "index": 9.4},
    "request_id": _REQUEST_ID,
}

DOCUMENTS: dict[str, Any] = {"data": [_SUMMARY], "has_more": False, "next_cursor": None}

_CHUNK: dict[str, Any] = {
    "chunk_id": "c2Fx",
    "ordinal": 9,
    "start": 10_422,
    "end": 10_462,
    "text": "Each parent may take 320 working days of",
    "token_count": 9,
    "page_start": None,
    "page_end": None,
    "heading_path": ["Leave", "Parental leave"],
    "kind": "child",
    "context": "Leave policy › Leave › Parental leave",
    "parent_id": None,
}

CHUNKS: dict[str, Any] = {"data": [_CHUNK], "has_more": True, "next_cursor": "9"}

VERSIONS: dict[str, Any] = {
    "data": [
        {
            "version": 1,
            "etag": _ETAG,
            "title": "Leave policy",
            "characters": 31_877,
            "chunk_count": 42,
            "created_at": _TIME,
            "current": True,
            "kept": True,
            "content_hash": _HASH,
        }
    ],
    "has_more": False,
    "next_cursor": None,
}

BATCH: dict[str, Any] = {
    "results": [
        {
            "index": 0,
            "id": "leave-2026",
            "status": 202,
            "outcome": "pending",
            "job_id": "job_7f3a0c1d2e4b5a6978801234",
            "duplicate_of": [],
            "warnings": [],
            "error": None,
        },
        {
            "index": 1,
            "id": "blank",
            "status": 422,
            "outcome": "failed",
            "job_id": None,
            "duplicate_of": [],
            "warnings": [],
            "error": {
                "type": "urn:footnote:problem:empty_document",
                "title": "The document is empty",
                "status": 422,
                "detail": "the document holds no text, only white space",
                "code": "empty_document",
            },
        },
    ],
    "request_id": _REQUEST_ID,
}

JOB: dict[str, Any] = {
    "id": "job_7f3a0c1d2e4b5a6978801234",
    "kind": "ingest",
    "collection": "handbook",
    "document_id": "leave-2026",
    "state": "running",
    "stage": "embed",
    "progress": {"done": 128, "total": 420, "unit": "chunks"},
    "attempt": 1,
    "stages": [{"name": "load", "ms": 310.0}],
    "error": None,
    "result": None,
    "created_at": _TIME,
    "started_at": _TIME,
    "finished_at": None,
}

JOBS: dict[str, Any] = {"data": [JOB], "has_more": False, "next_cursor": None}

_PASSAGE: dict[str, Any] = {
    "rank": 1,
    "chunk_id": "c2Fx",
    "document_id": "leave-2026",
    "collection": "handbook",
    "title": "Leave policy",
    "text": "Each parent may take 320 working days of",
    "start": 10_422,
    "end": 10_462,
    "page_start": None,
    "page_end": None,
    "heading_path": ["Leave", "Parental leave"],
    "score": 0.9731,
    "score_type": "relative",
    "found_by": ["dense", "keyword"],
    "scores": {
        "dense": {"score": 0.874, "rank": 1},
        "keyword": {"score": 11.2, "rank": 1},
        "fused": 0.9731,
        "rerank": None,
    },
    "context": None,
    "highlights": [{"start": 10_446, "end": 10_453}],
    "merged": [],
    "group": None,
    "metadata": {"team": "hr", "year": 2026},
}

SEARCH: dict[str, Any] = {
    "data": [_PASSAGE],
    "query": {"original": "parental leave", "used": ["parental leave"], "mode": "hybrid"},
    "has_more": False,
    "next_cursor": None,
    "facets": {"team": [{"value": "hr", "count": 1}]},
    "degraded": [],
    "warnings": [],
    "trace": None,
    "timings_ms": {"embed": 3.0, "dense": 0.8, "keyword": 0.6, "fuse": 0.1, "hydrate": 0.7, "total": 5.3},
    "request_id": _REQUEST_ID,
}

ASK: dict[str, Any] = {
    "answer": "Each parent may take 320 working days [1].",
    "answered": True,
    "reason": None,
    "citations": [
        {
            "marker": 1,
            "answer_span": {"start": 0, "end": 42},
            "quote": "320 working days",
            "document_id": "leave-2026",
            "chunk_id": "c2Fx",
            "start": 10_443,
            "end": 10_459,
            "page": None,
            "heading_path": ["Leave", "Parental leave"],
            "verified": True,
        }
    ],
    "invalid_citations": 0,
    "sources": [
        {
            "marker": 1,
            "chunk_id": "c2Fx",
            "document_id": "leave-2026",
            "title": "Leave policy",
            "text": "Each parent may take 320 working days of",
            "start": 10_422,
            "end": 10_462,
            "page_start": None,
            "page_end": None,
            "heading_path": ["Leave", "Parental leave"],
            "score": 0.1818,
        }
    ],
    "query": {"standalone": "How many days of parental leave?"},
    "model": "extractive",
    "usage": {"prompt_tokens": 0, "completion_tokens": 0},
    "warnings": [],
    "timings_ms": {"search": 12.0, "total": 31.0},
    "request_id": _REQUEST_ID,
}

PREVIEW: dict[str, Any] = {
    "chunking": {"strategy": "auto", "size": 1200, "overlap": 0, "unit": "characters"},
    "characters": 49,
    "children": {
        "total": 1,
        "characters": {"min": 49, "median": 49, "max": 49},
        "tokens": {"min": 14, "median": 14, "max": 14},
    },
    "parents": None,
    "sentences_embedded": 0,
    "data": [
        {
            "ordinal": 0,
            "kind": "child",
            "parent": None,
            "start": 0,
            "end": 49,
            "text": "# Leave\n\nEach parent may take 320 working days.",
            "context": "",
            "characters": 49,
            "token_count": 14,
            "page_start": None,
            "page_end": None,
            "heading_path": ["Leave"],
        }
    ],
    "has_more": False,
    "warnings": [],
    "timings_ms": {"load": 1.0, "clean": 0.0, "chunk": 2.0, "total": 6.0},
    "request_id": _REQUEST_ID,
}

API_KEY: dict[str, Any] = {
    "id": "key_5d1c0f9e8a7b6c5d",
    "name": "intranet search",
    "prefix": "fn_5d1c0f9e",
    "role": "search",
    "collections": ["handbook"],
    "filter": {"field": "team", "op": "eq", "value": "hr"},
    "requests_per_minute": 600,
    "created_at": _TIME,
    "expires_at": None,
    "last_used_at": None,
    "revoked_at": None,
}

NEW_API_KEY: dict[str, Any] = API_KEY | {"secret": "fn_5d1c0f9e8a7b6c5d_…"}
