"""Every route of the service, in the order of the contract."""

from fastapi import APIRouter

from app.api.routes import (
    api_keys,
    ask,
    collections,
    document_content,
    document_writes,
    documentation,
    documents,
    health,
    jobs,
    metrics,
    search,
    upkeep,
)

router = APIRouter()
for routes in (
    collections,
    upkeep,
    documents,
    document_writes,
    document_content,
    jobs,
    search,
    ask,
    api_keys,
    health,
    metrics,
    documentation,
):
    router.include_router(routes.router)
