"""Every embedder and language model by name; adding one is a file and a line here."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from app.embedding_space import EmbeddingSpace, require_same_space
from app.errors import (
    EmbeddingModelMismatch,
    EmbeddingUnavailable,
    InvalidRequest,
    LanguageModelUnavailable,
    Misconfigured,
)
from app.inference.embedders import e5_files, hashed
from app.inference.embedders.hashed import HashedEmbedder
from app.inference.embedders.multilingual_e5 import MultilingualE5
from app.inference.embedders.openai_compatible import OpenAICompatibleEmbedder
from app.inference.embedding_cache import CachedEmbedder
from app.inference.language_models.openai_compatible import OpenAICompatibleLanguageModel
from app.inference.port import Embedder, LanguageModel
from app.inference.remote import RemoteServer
from app.settings import Settings


def _local(settings: Settings) -> Embedder:
    if settings.local_model == e5_files.MODEL_NAME:
        find_files = partial(e5_files.converted_files, settings.models_folder)
    else:
        find_files = partial(e5_files.files_in, Path(settings.local_model))
    return MultilingualE5(_local_name(settings), find_files, settings.embedding_threads)


def _local_name(settings: Settings) -> str:
    return Path(settings.local_model).name


def _hashed(_settings: Settings) -> Embedder:
    return HashedEmbedder()


def _remote_name(settings: Settings) -> str:
    if not settings.embedding_model:
        raise Misconfigured("The embedder openai_compatible needs its model's name in FOOTNOTE_EMBEDDING_MODEL")
    return settings.embedding_model


def _openai_compatible(settings: Settings) -> Embedder:
    server = RemoteServer(
        "embedding server",
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_api_key.get_secret_value() if settings.embedding_api_key else None,
        timeout_seconds=settings.embedding_timeout_seconds,
        unavailable=EmbeddingUnavailable,
    )
    return OpenAICompatibleEmbedder(
        server,
        model=_remote_name(settings),
        dimensions=settings.embedding_dimensions,
        window_tokens=settings.embedding_window_tokens,
        batch=settings.embedding_batch,
    )


def _openai_compatible_language_model(settings: Settings) -> LanguageModel:
    if not settings.language_model:
        raise Misconfigured("A language model needs its name in FOOTNOTE_LANGUAGE_MODEL")
    server = RemoteServer(
        "language model's server",
        base_url=settings.language_model_base_url,
        api_key=settings.language_model_api_key.get_secret_value() if settings.language_model_api_key else None,
        timeout_seconds=settings.language_model_timeout_seconds,
        unavailable=LanguageModelUnavailable,
    )
    return OpenAICompatibleLanguageModel(
        server, model=settings.language_model, context_tokens=settings.language_model_context_tokens
    )


EMBEDDERS: Mapping[str, Callable[[Settings], Embedder]] = {
    "local": _local,
    "openai_compatible": _openai_compatible,
    "hashed": _hashed,
}

LANGUAGE_MODELS: Mapping[str, Callable[[Settings], LanguageModel]] = {
    "openai_compatible": _openai_compatible_language_model,
}


def create_embedder(name: str, settings: Settings) -> Embedder:
    """Make the embedder registered as `name`; raises `InvalidRequest` for an unknown one."""
    if name not in EMBEDDERS:
        raise InvalidRequest(f"{name!r} is no embedder", hint=f"choose one of {', '.join(EMBEDDERS)}")
    return EMBEDDERS[name](settings)


def create_language_model(settings: Settings) -> LanguageModel | None:
    """Make the configured language model, or return `None` where none is configured."""
    return LANGUAGE_MODELS["openai_compatible"](settings) if settings.language_model else None


class Embedders:
    """The process's embedders by the name of their model, one of each, made at first use and cached. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._made: dict[str, Embedder] = {}
        self._names = _model_names(settings)
        self.default_model = next(name for name, kind in self._names.items() if kind == settings.embedder)

    def available(self) -> list[str]:
        """Return the names that `get` takes, the default first."""
        return sorted(self._names, key=lambda name: name != self.default_model)

    def get(self, model_name: str) -> Embedder:
        """Return the embedder of a model; raises `InvalidRequest` that names what is available."""
        kind = self._names.get(model_name)
        if kind is None:
            raise InvalidRequest(
                f"The embedding model {model_name!r} is not configured here",
                hint=f"choose one of {', '.join(self.available())}",
            )
        with self._lock:
            if model_name not in self._made:
                embedder = create_embedder(kind, self._settings)
                self._made[model_name] = CachedEmbedder(embedder, self._settings.embedding_cache_bytes)
            return self._made[model_name]

    def of_collection(self, model_name: str) -> Embedder:
        """Return the embedder of a collection's model; raises `EmbeddingModelMismatch` where it is not configured."""
        if model_name not in self._names:
            raise EmbeddingModelMismatch(
                f"the collection was made with the embedding model {model_name!r}, which is not configured here",
                hint="configure that model, or move the collection by `POST /v1/collections/{collection}/reembed` to "
                f"one of {', '.join(self.available())}",
            )
        return self.get(model_name)

    def of_vectors(self, space: EmbeddingSpace | None, model_name: str) -> Embedder:
        """Return the embedder of the space of a collection's vectors, or of its model while it has none.

        A collection that was just moved to another model has vectors of that one before its settings say so. Raises
        `EmbeddingModelMismatch` where vectors of the space cannot be made here.
        """
        embedder = self.of_collection(model_name if space is None else space.model)
        if space is not None:
            require_same_space(space, embedder.space)
        return embedder

    def close(self) -> None:
        """Close every embedder that was made."""
        with self._lock:
            for embedder in self._made.values():
                embedder.close()
            self._made.clear()


def _model_names(settings: Settings) -> dict[str, str]:
    """Return the registry's name of each model that the settings allow; the default wins where two share a name."""
    names = {"local": _local_name(settings), "hashed": hashed.MODEL_NAME}
    if settings.embedding_model or settings.embedder == "openai_compatible":
        names["openai_compatible"] = _remote_name(settings)
    return {model: kind for kind, model in names.items()} | {names[settings.embedder]: settings.embedder}
