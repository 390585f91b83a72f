"""The settings of every service, and its errors: a status and one sentence."""

import os
import secrets
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from evalake.core.configuration import Configuration, read_configuration, whole_address
from evalake.core.errors import EvalakeError
from evalake.storage.lake import Lake

TOKEN_VARIABLE = "EVALAKE_API_TOKEN"
NOBODY_IN_PARTICULAR = "api-client"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Lake, configuration, and token."""

    lake: Lake
    configuration_file: str | None = None
    token: str | None = None
    writes: bool = False
    """Whether the viewer's pages may write labels."""

    @classmethod
    def of_command(cls, lake: str, config: Path | None, **others: Any) -> Self:
        """Build the settings of a service that a command starts: its token is the environment's.

        Lake and file are given by their whole paths, which mean the same in the processes that it starts.
        """
        return cls(
            lake=Lake(whole_address(lake)),
            configuration_file=str(config.resolve()) if config else None,
            token=os.environ.get(TOKEN_VARIABLE) or None,
            **others,
        )

    def guarded(self, *, no_token: bool = False) -> tuple[Self, str | None]:
        """Give a service that would be open a random token, which is returned, too; with `no_token`, take its own away.

        A service that believes trusted proxies gets none.
        """
        if no_token:
            return replace(self, token=None), None
        if not self.is_open:
            return self, None
        made = secrets.token_urlsafe(24)
        return replace(self, token=made), made

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration file's contents."""
        return read_configuration(Path(self.configuration_file) if self.configuration_file else None)

    @property
    def is_open(self) -> bool:
        """Whether anybody may use the service: it has neither a token nor trusted proxies."""
        return self.token is None and not self.configuration.service.trusted_proxies


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
