"""The desk: everything that a request may need, in one place for the life of the service."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from service.auth import who
from service.gate import Gate
from service.ratings import Ratings
from service.scorings import Scorings, State
from service.sessions import Known, Sessions
from service.settings import Settings
from service.views import Detail, conversation, entry, score
from service.watch import Watch


@dataclass(frozen=True)
class Desk:
    """What the service consists of."""

    settings: Settings
    sessions: Sessions
    gate: Gate
    scorings: Scorings
    ratings: Ratings
    watch: Watch

    @classmethod
    def open(cls, settings: Settings) -> "Desk":
        """Everything as the settings say."""
        sessions = Sessions(settings.lake, settings.sources)
        gate = Gate(settings.lake.uri, settings.configuration_file)
        scorings = Scorings(settings, sessions, gate)
        watch = Watch(scorings, gate, settings.configuration.service.lost_after_seconds)
        return cls(settings, sessions, gate, scorings, Ratings(settings.lake), watch)

    def score(self, row: dict[str, Any], state: State | None = None) -> dict[str, Any]:
        """A scoring as the API gives it."""
        tools = (state or self.scorings.state()).tools.get(row["score_id"], {})
        score_id = row["score_id"]
        return score(row, tools, self.watch.phase(score_id), self.gate.flow_run_of(row))

    def entry(self, known: Known, newest: dict[str, Any] | None) -> dict[str, Any]:
        """A session as the list shows it."""
        return entry(known, newest, None if newest is None else self.watch.phase(newest["score_id"]))

    def detail(self, known: Known) -> Detail:
        """A session whole."""
        state = self.scorings.state()
        newest = state.newest(known.session_id)
        return Detail(
            **{
                **self.entry(known, newest),
                "score": None if newest is None else self.score(newest, state),
                **conversation(self.sessions.session(known)),
                "human_ratings": self.ratings.of(known.session_id, state),
            }
        )


def desk_of(connection: HTTPConnection) -> Desk:
    """The desk of the service that a request came to."""
    found: Desk = connection.app.state.desk
    return found


DeskHere = Annotated[Desk, Depends(desk_of)]


def user_of(connection: HTTPConnection, desk: DeskHere) -> str:
    """Who is asking. Raises NotAllowedError where it is nobody that may."""
    return who(connection, desk.settings)


User = Annotated[str, Depends(user_of)]
