"""The roadmap that was made last: what sessions lack, grouped and ranked, with the sessions behind each theme."""

from pydantic import BaseModel, Field

from storage.lake import Lake
from suites.session_review.suite import SUITE
from tasks.jobs.roadmap.make import as_data, newest


class Mention(BaseModel):
    """What a judge named about one session, and why."""

    session_id: str = Field(validation_alias="sample_id")
    name: str
    text: str | None


class Theme(BaseModel):
    """Mentions of the same meaning: in how many sessions they stand, and the points that these lack because of it."""

    theme_id: str
    rank: int
    theme: str
    sessions: int = Field(validation_alias="samples")
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
    sessions: int = Field(validation_alias="samples")
    made_at: str | None
    kinds: list[ThemeKind]


def read_newest(lake: Lake) -> RoadmapView:
    """Read the roadmap that was made last."""
    return RoadmapView.model_validate(as_data(newest(lake, SUITE.name)))
