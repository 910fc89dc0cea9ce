"""Make the application: its lifespan, its middleware, its routes. Nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import FastAPI

from app.api import problems
from app.api.authentication import Authentication
from app.api.event_stream import Stopping
from app.api.job_watch import JobWatch
from app.api.middleware import RequestContext
from app.api.openapi import openapi_document
from app.api.router import router
from app.bootstrap import Services, build_services
from app.processors import processors
from app.server_processes import keep_to_own_processors
from app.settings import Settings, load_settings
from app.worker import Worker

THREADS = 64
"""Requests served side by side in one process; of their searches as many work at once as there are processors."""


def create_app(settings: Settings | None = None, services: Services | None = None) -> FastAPI:
    """Return the application; services that are given stay open when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        made = services
        if made is None:
            made = await asyncio.to_thread(build_services, settings or load_settings())
        if made.settings.workers > 1:
            processors.share(made.settings.workers)
        worker = Worker(made)
        app.state.services, app.state.worker = made, worker
        app.state.job_watch, app.state.stopping = JobWatch(made.jobs), Stopping()
        await asyncio.to_thread(worker.start)
        if made.settings.workers > 1:
            # This thread and those that serve requests, none of which has begun; not those that work on jobs.
            keep_to_own_processors(made.settings.workers, made.settings.data / "workers")
        try:
            with app.state.stopping.told_by_signals():
                yield
        finally:
            app.state.job_watch.close()
            await to_thread.run_sync(worker.stop)
            if made is not services:
                await to_thread.run_sync(made.close)

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    problems.install(app)
    app.add_middleware(Authentication)
    app.add_middleware(RequestContext)
    app.router.routes.extend(router.routes)
    app.openapi = openapi_document  # type: ignore[method-assign]
    return app
