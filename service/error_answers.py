"""What every service answers where something is wrong: a status, and one sentence as JSON."""

import logging

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from core.errors import EvalakeError
from core.redaction import redact
from service.access_control import refusal
from service.errors import ApiError

logger = logging.getLogger("evalake.service")


def add_error_answers(app: FastAPI) -> None:
    """Have every error answered as JSON with a sentence."""
    app.add_exception_handler(EvalakeError, _sentence)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unexpected)


async def _sentence(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, ApiError):
        return refusal(error)
    return JSONResponse({"detail": redact(str(error))}, 500)


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # Without the input, which may be huge, or of a kind that JSON has no word for
    problems = [{name: each[name] for name in ("type", "loc", "msg")} for each in error.errors()]
    return JSONResponse({"detail": problems}, 422)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer an error as FastAPI does, but with 422 instead of 400 where the body cannot be read: it is malformed."""
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return JSONResponse({"detail": [{"type": "json_invalid", "loc": ["body"], "msg": str(error.detail)}]}, 422)
    return await http_exception_handler(request, error)


async def _unexpected(_: Request, error: Exception) -> JSONResponse:
    logger.error("a request failed", exc_info=error)
    return JSONResponse({"detail": f"unexpected {type(error).__name__}: the service's log says more"}, 500)
