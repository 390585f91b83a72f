"""The roadmap that was made last: what sessions lack, grouped and ranked, with the sessions behind each theme."""

from typing import Any

from pydantic import BaseModel

from storage.lake import Lake
from suites.session_review.suite import SUITE
from tasks.jobs.roadmap.make import as_data, newest


class Mention(BaseModel):
    """What a judge named about one session, and why."""

    session_id: str
    name: str
    text: str | None


class Theme(BaseModel):
    """Mentions of the same meaning: in how many sessions they stand, and the points that these lack because of it."""

    theme_id: str
    rank: int
    theme: str
    sessions: int
    points_lost: float
    mean_score: float
    mentions: list[Mention]


class ThemeKind(BaseModel):
    """The themes of one kind, the one that costs most first."""

    kind: str
    title: str
    themes: list[Theme]


class RoadmapView(BaseModel):
    """The whole roadmap; without kinds where none was made yet."""

    roadmap_id: str | None
    judge: str | None
    sessions: int
    made_at: str | None
    kinds: list[ThemeKind]


def read_newest(lake: Lake) -> RoadmapView:
    """Read the roadmap that was made last."""
    data = as_data(newest(lake, SUITE.name))
    return RoadmapView(
        roadmap_id=data["roadmap_id"],
        judge=data["judge"],
        sessions=data["samples"],
        made_at=data["made_at"],
        kinds=[
            ThemeKind(kind=kind["kind"], title=kind["title"], themes=[_theme(each) for each in kind["themes"]])
            for kind in data["kinds"]
        ],
    )


def _theme(theme: dict[str, Any]) -> Theme:
    shared = ("theme_id", "rank", "theme", "points_lost", "mean_score")
    mentions = [
        Mention(session_id=each["sample_id"], name=each["name"], text=each["text"]) for each in theme["mentions"]
    ]
    return Theme(**{name: theme[name] for name in shared}, sessions=theme["samples"], mentions=mentions)
