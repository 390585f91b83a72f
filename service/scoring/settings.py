"""What the scoring service is started with."""

from dataclasses import dataclass
from functools import cached_property

from core.urls import require_no_password
from providers.routes import find_route
from service.settings import Settings
from suites.registry import baselines
from suites.session_review.prompts import criteria_hash_of
from suites.session_review.sources.read import require_url
from suites.session_review.suite import SUITE
from tasks.runtime.context import options_of
from tasks.runtime.secrets import read_secret


@dataclass(frozen=True, kw_only=True)
class ScoringSettings(Settings):
    """The judge and the sources of sessions, beside what every service needs."""

    judge: str = SUITE.conversation.default_judges[0]
    sources: tuple[str, ...] = ()

    @cached_property
    def criteria(self) -> str:
        """The hash of the criteria that sessions are scored under now."""
        return criteria_hash_of(options_of(SUITE, self.configuration), SUITE.prompts.types[0])

    def check(self) -> None:
        """Check options, sources and judge. Raises an EvalakeError for the first thing that is wrong."""
        options_of(SUITE, self.configuration)
        for source in self.sources:
            require_no_password("--sessions", source, "leave the password out and set PGPASSWORD")
            require_url(source)
        find_route(self.judge, self.configuration, read_secret, baselines())
