"""What the API answers where it cannot do as asked: a status and one sentence."""

from contracts.errors import EvalakeError


class ApiError(EvalakeError):
    """Base: `status` is the HTTP status that tells it."""

    status = 500


class NotOverError(ApiError):
    """The session has not ended, so it cannot be scored."""

    status = 400


class NotAllowedError(ApiError):
    """Nobody that the service knows is asking."""

    status = 401


class NotFoundError(ApiError):
    """There is no such session, or it was never scored."""

    status = 404


class ConflictError(ApiError):
    """A scoring is on its way already."""

    status = 409


class DrainingError(ApiError):
    """The service is shutting down."""

    status = 503
