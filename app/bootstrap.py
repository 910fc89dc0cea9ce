"""The only file that constructs long-lived objects; everything else receives them."""

from dataclasses import dataclass
from functools import partial

from app.catalog.admin_key import admin_key
from app.catalog.api_keys import ApiKeys
from app.catalog.collections import Collections
from app.catalog.database import Database
from app.catalog.idempotency import Idempotency
from app.catalog.jobs import Jobs
from app.catalog.query_log import QueryLog
from app.catalog.query_recorder import QueryRecorder
from app.catalog.rate_limits import RateLimits
from app.catalog.sources import Sources
from app.catalog.webhooks import Webhooks
from app.indexes.analysis import Analyzer
from app.indexes.pool import OpenCollections
from app.indexes.registry import create_index
from app.inference.port import LanguageModel
from app.inference.registry import Embedders, create_language_model
from app.inference.reranker_registry import Rerankers
from app.ingestion.fetch import Fetcher
from app.ingestion.guarded_http import GuardedHttp
from app.ingestion.ingest import Ingestion
from app.ingestion.isolation import ParserPool
from app.ingestion.packing import ExportPlaces
from app.ingestion.preview import PATIENCE_SECONDS
from app.ingestion.spool import Spool
from app.notification import Notifier, announce_end
from app.retrieval.run import Models
from app.settings import Settings
from app.stores.registry import create_store, open_store


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that lives as long as the process."""

    settings: Settings
    spool: Spool
    database: Database
    collections: Collections
    api_keys: ApiKeys
    jobs: Jobs
    idempotency: Idempotency
    rate_limits: RateLimits
    opened: OpenCollections
    embedders: Embedders
    language_model: LanguageModel | None
    rerankers: Rerankers
    ingestion: Ingestion
    webhooks: Webhooks
    notifier: Notifier
    query_log: QueryLog
    query_recorder: QueryRecorder
    exports: ExportPlaces

    @property
    def models(self) -> Models:
        """Return what a search may ask beside the collection's embedder."""
        return Models(
            language_model=self.language_model,
            rerankers=self.rerankers,
            transform_seconds=self.settings.transform_timeout_seconds,
        )

    def ready(self) -> dict[str, str]:
        """Return `ok` for the catalog once it has answered a query."""
        self.jobs.queued_count()
        return {"catalog": "ok"}

    def close(self) -> None:
        """Release everything, in the reverse order of its making."""
        self.ingestion.parsers.close()
        self.ingestion.previewers.close()
        self.opened.close()
        self.rerankers.close()
        self.embedders.close()
        if self.language_model is not None:
            self.language_model.close()
        self.query_recorder.close()
        self.database.close()
        self.spool.close()


def build_services(settings: Settings) -> Services:
    """Construct everything on the settings' data folder, which is made if need be; no model is loaded yet."""
    settings.data.mkdir(parents=True, exist_ok=True)
    spool = Spool(settings.data / "spool")
    database = Database(settings.data / "catalog.db")
    database.migrate()
    # Opens what watches for commits, so that no request waits for it.
    database.moment()
    collections = Collections(database)
    webhooks = Webhooks(database, most=settings.max_webhooks)
    jobs = Jobs(
        database,
        max_queued=settings.max_queued_jobs,
        lease_seconds=settings.job_lease_seconds,
        max_attempts=settings.job_attempts,
        announce=partial(announce_end, webhooks),
    )
    analyzer = Analyzer()
    opened = OpenCollections(
        settings.data / "collections",
        create_store=partial(create_store, settings=settings),
        open_store=partial(open_store, settings=settings),
        open_index=lambda folder: create_index(folder, analyzer.signature),
        analyzer=analyzer,
        limit=settings.open_collections,
    )
    opened.recover(collections.unchanging())
    embedders = Embedders(settings)
    http = GuardedHttp(settings.allowed_networks, user_agent=settings.fetch_user_agent)
    parsers = ParserPool(settings.parse_processes)
    # Apart, so that neither a look at a document nor the documents that come keep the other waiting.
    previewers = ParserPool(1, patience_seconds=PATIENCE_SECONDS)
    language_model = create_language_model(settings)
    query_log = QueryLog(database, most=settings.query_log_entries)
    return Services(
        settings=settings,
        spool=spool,
        database=database,
        collections=collections,
        api_keys=ApiKeys(database, admin_key(settings)[0]),
        jobs=jobs,
        idempotency=Idempotency(database, settings.idempotency_hours),
        rate_limits=RateLimits(),
        opened=opened,
        embedders=embedders,
        language_model=language_model,
        rerankers=Rerankers(settings, language_model),
        ingestion=Ingestion(
            settings,
            collections,
            jobs,
            opened,
            embedders,
            parsers,
            previewers,
            Sources(database),
            spool.folder,
            _fetcher(settings, http),
            language_model,
        ),
        webhooks=webhooks,
        notifier=Notifier(
            webhooks,
            http,
            timeout_seconds=settings.webhook_timeout_seconds,
            most_at_once=settings.webhook_deliveries,
            most_attempts=settings.webhook_attempts,
            retention_days=settings.job_retention_days,
        ),
        query_log=query_log,
        query_recorder=QueryRecorder(query_log),
        exports=ExportPlaces(settings.exports),
    )


def _fetcher(settings: Settings, http: GuardedHttp) -> Fetcher | None:
    if not settings.fetch:
        return None
    return Fetcher(http, most_bytes=settings.max_upload_bytes, timeout_seconds=settings.fetch_timeout_seconds)
