"""What the service is started with."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from contracts.configuration import Configuration, read_configuration
from providers.routes import find_route
from storage.lake import Lake
from suites.session_review.suite import SUITE
from tasks.secrets import read_secret

TOKEN_VARIABLE = "EVALAKE_API_TOKEN"
NOBODY_IN_PARTICULAR = "api-client"


@dataclass(frozen=True)
class Settings:
    """Lake, judge, sources of sessions, and whom to believe."""

    lake: Lake
    judge: str = SUITE.baseline_judges[0]
    sources: tuple[str, ...] = ()
    configuration_file: str | None = None
    token: str | None = None

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration file's contents."""
        return read_configuration(Path(self.configuration_file) if self.configuration_file else None)

    @property
    def is_open(self) -> bool:
        """Whether everybody who reaches the service may use it, for want of a token and of trusted proxies."""
        return self.token is None and not self.configuration.service.trusted_proxies

    def check(self) -> None:
        """Look everything up. Raises an EvalakeError for the first thing that is wrong."""
        find_route(self.judge, self.configuration, read_secret)
