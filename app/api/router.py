"""Every route of the service, in the order of the contract."""

from fastapi import APIRouter

from app.api.routes import (
    api_keys,
    ask,
    chunks,
    collections,
    document_content,
    document_writes,
    documentation,
    documents,
    fetching,
    health,
    jobs,
    metrics,
    queries,
    search,
    sources,
    transfers,
    upkeep,
    webhooks,
)

router = APIRouter()
for routes in (
    collections,
    transfers,
    upkeep,
    documents,
    document_writes,
    document_content,
    chunks,
    fetching,
    sources,
    jobs,
    search,
    ask,
    queries,
    api_keys,
    webhooks,
    health,
    metrics,
    documentation,
):
    router.include_router(routes.router)
