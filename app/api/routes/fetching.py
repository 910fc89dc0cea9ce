"""A document from a URL."""

from functools import partial

from fastapi import APIRouter, Request, Response

from app.api.declared import accepted, keyed
from app.api.dependencies import Access, IngestAccess
from app.api.document_chunking import own_chunking
from app.api.document_rules import check_document_id, check_metadata
from app.api.idempotency import IdempotencyKey, answered_once
from app.api.schemas.documents import SubmittedReply
from app.api.schemas.fetching import FetchBody
from app.api.schemas.jobs import JobReply
from app.api.strict_route import StrictRoute
from app.api.submitting import answer_one
from app.api.visibility import refuse_hidden_document
from app.api.waiting import PreferredWait
from app.ingestion.refresh import FetchRequest, accept_fetch, fetcher_of, id_of_url
from app.ingestion.submission import Submitted

router = APIRouter(prefix="/v1/collections/{collection}/documents", route_class=StrictRoute, tags=["documents"])


@router.post(
    "/fetch",
    operation_id="documents.fetch",
    summary="Make a document of what a URL names",
    response_model=SubmittedReply,
    responses=keyed(403, 404, 409, 413, 415, 502, 507)
    | {201: {"model": SubmittedReply, "description": "The document is new and ready"}}
    | accepted(JobReply, "The URL is being fetched"),
)
async def fetch_document(
    request: Request, access: IngestAccess, body: FetchBody, wait: PreferredWait, idempotency: IdempotencyKey
) -> Response:
    """Fetch the URL, unless it has not changed, and put what came; addresses inside a network are refused.

    The URL becomes the document's source, which is fetched again every `refresh_seconds` or when asked.
    """
    accept = partial(fetched, access, body, "")
    return await answered_once(
        idempotency, lambda: answer_one(access, request.scope, accept, wait), access.collection.id
    )


def fetched(access: Access, body: FetchBody, pointer: str) -> Submitted:
    """Accept a URL; `pointer` leads to the body in the request."""
    ingestion = access.services.ingestion
    url = fetcher_of(ingestion).checked(body.url, f"{pointer}/url")
    document_id = check_document_id(body.id or id_of_url(url), f"{pointer}/id")
    check_metadata(body.metadata, access.services.settings, f"{pointer}/metadata")
    refuse_hidden_document(access, document_id)
    chunking = own_chunking(access, body.chunking, f"{pointer}/chunking")
    wanted = FetchRequest(url, document_id, body.title, body.metadata, chunking, body.refresh_seconds)
    return accept_fetch(ingestion, access.collection, wanted)
