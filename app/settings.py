"""Every environment variable, with its meaning and default. An unknown `FOOTNOTE_*` name refuses to start."""

import difflib
import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import Misconfigured

PREFIX = "FOOTNOTE_"

Network: TypeAlias = IPv4Network | IPv6Network


class Settings(BaseSettings):
    """The service's settings; each field's name in capitals after `FOOTNOTE_` is its variable."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    data: Path = Field(Path("data"), description="Folder that holds everything")
    models: Path | None = Field(None, description="Folder of converted models; `models/` of the data folder by default")
    host: str = Field("127.0.0.1", description="Address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on")
    workers: int = Field(1, ge=1, le=64, description="Server processes; as many as processors serve many clients best")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged")
    log_format: Literal["json", "text"] = Field("text", description="One JSON object or one readable line per event")
    admin_key: SecretStr | None = Field(None, min_length=16, description="Admin key; made at first start if not given")

    embedder: Literal["local", "openai_compatible", "hashed"] = Field(
        "local", description="Where vectors come from by default"
    )
    embedding_base_url: str = Field(
        "https://api.openai.com/v1", description="Embedding server, for `openai_compatible`"
    )
    embedding_api_key: SecretStr | None = Field(None, description="Its key, where it needs one")
    embedding_model: str | None = Field(None, description="Its model's name")
    embedding_dimensions: int | None = Field(
        None, ge=1, le=16384, description="Asked of models that can shorten vectors"
    )
    embedding_window_tokens: int = Field(8191, ge=16, description="The longest text the remote model reads, in tokens")
    embedding_batch: int = Field(64, ge=1, le=2048, description="Texts in one request to the embedding server")
    embedding_timeout_seconds: float = Field(60, gt=0, description="Time limit of one request to the embedding server")
    embedding_threads: int = Field(2, ge=1, le=64, description="Texts the local model embeds side by side")
    embedding_cache_bytes: int = Field(32_000_000, ge=0, description="Memory for vectors of recent texts, per process")
    local_model: str = Field(
        "multilingual-e5-small",
        description="The embedded model's name, or a folder with model.onnx and sentencepiece.model",
    )

    language_model: str | None = Field(
        None, description="The language model's name; answers are extractive without one"
    )
    language_model_base_url: str = Field("https://api.openai.com/v1", description="Its OpenAI-compatible server")
    language_model_api_key: SecretStr | None = Field(None, description="Its key, where it needs one")
    language_model_context_tokens: int = Field(8192, ge=512, description="Its window, in tokens")
    contextualizer_tokens: int = Field(
        100, ge=16, le=2000, description="Longest context that it writes of a chunk, in tokens"
    )
    contextualizer_requests: int = Field(
        4, ge=1, le=64, description="Contexts of one document that it is asked for side by side"
    )
    language_model_timeout_seconds: float = Field(120, gt=0, description="Time limit of one answer")

    transform_timeout_seconds: float = Field(
        20, gt=0, description="Time limit of all that the language model is asked about one search's query"
    )

    rerank_base_url: str | None = Field(None, description="Rerank server, for the reranker `http`")
    rerank_api_key: SecretStr | None = Field(None, description="Its key, where it needs one")
    rerank_model: str | None = Field(None, description="Its model's name, where it has several")
    rerank_window_tokens: int = Field(
        512, ge=64, description="The longest query and passage together that its model reads, in tokens"
    )
    rerank_timeout_seconds: float = Field(3, gt=0, description="Time limit of a reranker unless the search gives one")
    rerank_requests: int = Field(8, ge=1, le=64, description="Passages that a language model judges side by side")
    cross_encoder: Path | None = Field(
        None,
        description="Folder with model.onnx and tokenizer.json, for the reranker `cross_encoder`; or the name of a "
        "model of fastembed, which is downloaded once",
    )

    max_upload_bytes: int = Field(200_000_000, ge=1, description="Largest body of an upload, and largest file")
    max_json_bytes: int = Field(64_000_000, ge=1, description="Largest JSON body")
    max_batch_documents: int = Field(1000, ge=1, description="Most documents in one batch or upload")
    max_pages: int = Field(5000, ge=1, description="Most pages of one document")
    max_characters: int = Field(100_000_000, ge=1, description="Longest text of one document, in code points")
    max_chunks: int = Field(200_000, ge=1, description="Most chunks of one document")
    max_metadata_bytes: int = Field(64_000, ge=2, description="Largest metadata of one document, as JSON")
    max_query_characters: int = Field(32_000, ge=1, description="Longest query or question")
    max_top_k: int = Field(200, ge=1, description="Largest `top_k`")
    max_candidates: int = Field(1000, ge=1, description="Largest `candidates`")
    max_queries: int = Field(8, ge=1, description="Most queries of one search, those that a model adds included")
    max_query_terms: int = Field(
        1024, ge=1, description="Different terms of a query that are looked up, the rarest; more are a warning"
    )
    max_query_synonyms: int = Field(
        50_000, ge=0, description="Synonyms of a query's words, each where it stands; more are a warning"
    )
    max_vocabulary: int = Field(5000, ge=0, description="Synonyms and stop words of one collection, together")
    max_search_collections: int = Field(32, ge=1, description="Most collections of one search")
    max_expand_characters: int = Field(100_000, ge=1, description="Most characters that one hit may be expanded to")
    max_neighbours: int = Field(20, ge=0, description="Most chunks on either side that one hit is expanded by")
    max_merged_characters: int = Field(
        6000, ge=1, description="Longest passage that `diversity.merge` makes of hits that touch"
    )
    max_group_members: int = Field(
        100, ge=1, description="Further hits of a document that its group names; more are a warning"
    )
    max_facet_values: int = Field(
        100, ge=1, description="Values of a field that a facet tells, those of the most documents; more are a warning"
    )
    max_highlights: int = Field(100, ge=1, description="Places of words that one passage tells; more are a warning")
    max_version_lines: int = Field(
        1000,
        ge=1,
        description="Versions of one document that its history lists, beside those that can be brought back",
    )
    max_queued_jobs: int = Field(10_000, ge=1, description="Jobs that may wait; one more is 429")
    parse_timeout_seconds: float = Field(120, gt=0, description="Time limit to parse and cut one document")
    parse_memory_bytes: int = Field(
        2_000_000_000, ge=100_000_000, description="Memory limit of the process that parses"
    )
    ocr_page_seconds: float = Field(
        60, ge=0, description="Time that a page to be recognised (OCR) adds to its document's limit; 0 for none"
    )
    max_ocr_pages: int = Field(500, ge=1, description="Most pages of one document that are recognised (OCR)")
    max_attachments: int = Field(100, ge=0, description="Most attachments of one e-mail that become documents")
    parse_processes: int = Field(1, ge=1, le=64, description="Documents parsed side by side, per server process")

    fetch: bool = Field(False, description="Whether documents may be fetched from URLs")
    fetch_allowed_networks: str = Field(
        "",
        description="Networks that are not public and that fetches and webhooks may reach all the same, by commas: "
        "`10.20.0.0/16,fd12::/32`",
    )
    fetch_user_agent: str = Field(
        "Footnote", min_length=1, pattern=r"^[A-Za-z_-][ -~]*$", description="How fetches name themselves"
    )
    fetch_timeout_seconds: float = Field(60, gt=0, description="Time limit of one fetch, redirects included")
    max_webhooks: int = Field(20, ge=0, description="Most webhooks of one collection")
    webhook_timeout_seconds: float = Field(10, gt=0, description="Time limit of one delivery to a webhook")
    webhook_deliveries: int = Field(4, ge=1, le=64, description="Deliveries to webhooks at once, per server process")
    webhook_attempts: int = Field(10, ge=1, le=100, description="Attempts of a delivery before it is given up")

    ingest_threads: int = Field(2, ge=1, le=64, description="Jobs in work side by side, per server process")
    job_lease_seconds: float = Field(60, gt=1, description="Time after which another process takes over a silent job")
    job_attempts: int = Field(3, ge=1, description="Attempts of a job whose process dies; after the last it fails")
    job_retention_days: float = Field(7, gt=0, description="Time that finished jobs stay listed")
    idempotency_hours: float = Field(24, gt=0, description="Time that an Idempotency-Key is remembered")
    stream_heartbeat_seconds: float = Field(
        15, gt=0, le=60, description="Longest silence of a stream of events, then a comment is sent"
    )
    query_log_entries: int = Field(
        1000, ge=1, description="Queries that are kept of each collection's; the oldest goes"
    )
    search_timeout_seconds: float = Field(10, gt=0, description="Time limit of one search's database queries")
    mapped_bytes: int = Field(
        268_435_456,
        ge=0,
        description="How much of a collection's database is mapped into memory for searches; 0 for none, as on a "
        "network file system, where a page that cannot be read would end the process",
    )
    write_wait_seconds: float = Field(30, gt=0, description="Longest wait for another writer of the same collection")
    open_collections: int = Field(64, ge=1, description="Collections held open at once, per process")
    exports: int = Field(2, ge=1, description="Exports made or sent at once, per server process; one more is a 429")
    export_seconds: float = Field(3600, gt=0, description="Time limit for sending an export")
    idle_seconds: float = Field(600, ge=1, description="How long a collection that nobody uses stays open")

    @field_validator("fetch_allowed_networks")
    @classmethod
    def check_networks(cls, value: str) -> str:
        """Raise `ValueError` for what is no network."""
        _networks(value)
        return value

    @property
    def allowed_networks(self) -> tuple[Network, ...]:
        """Return the networks of `fetch_allowed_networks`."""
        return _networks(self.fetch_allowed_networks)

    @property
    def models_folder(self) -> Path:
        """Return the folder of converted models."""
        return self.models or self.data / "models"


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the environment; raise `Misconfigured` for an unknown name or a wrong value."""
    names = os.environ if environment is None else environment
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for name in sorted(names):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            nearest = difflib.get_close_matches(name.upper(), sorted(known), n=1)
            raise Misconfigured(
                f"{name} is not a setting",
                hint=f"did you mean {nearest[0]}?" if nearest else "see the README's table",
            )
    values = {
        name.upper().removeprefix(PREFIX).lower(): value
        for name, value in names.items()
        if name.upper().startswith(PREFIX) and value != ""
    }
    try:
        return Settings.model_validate(values) if environment is not None else Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = PREFIX + "_".join(str(part) for part in first["loc"]).upper()
        raise Misconfigured(f"{name}: {first['msg']}") from None


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
