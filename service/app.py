"""The application: routes, errors as sentences, headers, and the watch that runs beside them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from contracts.errors import EvalakeError
from providers.redaction import redact
from service import reading_routes, scoring_routes, socket
from service.desk import Desk
from service.errors import ApiError
from service.pages import add_pages
from service.settings import Settings
from tasks.context import CODE_VERSION

logger = logging.getLogger("evalake.service")


def create_app(settings: Settings) -> FastAPI:
    """The service as an ASGI application. Prefect must be configured (PREFECT_API_URL) when it starts."""
    desk = Desk.open(settings)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(desk.watch.run(), name="watch")
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    app = FastAPI(
        title="evalake scoring API",
        version=CODE_VERSION,
        description="Scores of agents' alert investigations, asked for and read.",
        lifespan=alive,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # they load scripts of other hosts
        redoc_url=None,
    )
    app.state.desk = desk
    app.add_exception_handler(EvalakeError, _sentence)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unexpected)
    for routes in (scoring_routes, reading_routes, socket):
        app.include_router(routes.router)
    add_pages(app)
    return app


async def _sentence(_: Request, error: Exception) -> JSONResponse:
    status = error.status if isinstance(error, ApiError) else 500
    headers = {"www-authenticate": "Bearer"} if status == 401 else {"retry-after": "30"} if status == 503 else None
    return JSONResponse({"detail": redact(str(error))}, status, headers)


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # Without the input, which may be huge, or of a kind that JSON has no word for
    found = [{name: each[name] for name in ("type", "loc", "msg")} for each in error.errors()]
    return JSONResponse({"detail": found}, 422)


async def _refused(request: Request, error: Exception) -> Response:
    """As usual, but for the one 400 that FastAPI has: a body that cannot be read at all is malformed like any other."""
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return JSONResponse({"detail": [{"type": "json_invalid", "loc": ["body"], "msg": str(error.detail)}]}, 422)
    return await http_exception_handler(request, error)


async def _unexpected(_: Request, error: Exception) -> JSONResponse:
    logger.error("a request failed", exc_info=error)
    return JSONResponse({"detail": f"unexpected {type(error).__name__}: the service's log says more"}, 500)
