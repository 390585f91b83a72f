"""The errors of the API: a status and one sentence."""

from evalake.core.errors import EvalakeError


class ApiError(EvalakeError):
    """Base: `status` is the HTTP status of the answer."""

    status = 500


class NotOverError(ApiError):
    """The session has not ended, so it cannot be scored."""

    status = 400


class WrongQueryError(ApiError):
    """The query is contradictory."""

    status = 400


class NotAllowedError(ApiError):
    """The service does not know who is asking."""

    status = 401


class NotFoundError(ApiError):
    """The session is unknown, or was never scored."""

    status = 404


class ConflictError(ApiError):
    """A scoring is on its way already."""

    status = 409


class TooLargeError(ApiError):
    """The request's body is too large to be read."""

    status = 413


class WrongHostError(ApiError):
    """The request is addressed to a name that is not the service's."""

    status = 421


class BusyError(ApiError):
    """As much is under way as may be at once."""

    status = 429


class DrainingError(ApiError):
    """The service is shutting down."""

    status = 503
