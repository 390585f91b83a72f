"""The table `roadmap_mentions`: what results say is wanting, grouped by what it means."""

from datetime import datetime

from pydantic import Field

from contracts.contract import Contract, RowModel
from contracts.rule import Kind, Rule, hash_rule, not_blank, not_negative


class RoadmapMentionRow(RowModel):
    """One thing that was named about one sample, with the theme that it belongs to in one roadmap."""

    roadmap_id: str = Field(
        description="The roadmap: SHA-256 over suite, judge, method and everything that was grouped."
    )
    theme_id: str = Field(description="The theme: SHA-256 over suite, kind and theme, the same in later roadmaps.")
    sample_hash: str = Field(description="The sample about which it was named.")
    name: str = Field(description="What was named, as the results have it.")
    suite: str = Field(description="The suite whose results were read.")
    judge: str | None = Field(description="The model that grouped by meaning; null where it was done by rules.")
    kind: str = Field(description="What kind of thing it is, as the suite tells them apart.")
    theme: str = Field(description="The name of the theme.")
    sample_id: str = Field(description="The sample, as its dataset calls it.")
    text: str | None = Field(description="Why it was named; null where nothing is said.")
    score: float = Field(description="The sample's mean score.")
    points_lost: float = Field(
        description="The points that the sample lacks, shared evenly among its themes of the kind; each row of a theme "
        "has the theme's share, divided by the sample's rows in it."
    )
    samples: int = Field(description="Of how many samples the roadmap is.")
    run_id: str = Field(description="The run that asked, as in the ledger.")
    made_at: datetime = Field(description="When.")


ROADMAP_MENTIONS = Contract(
    "roadmap_mentions",
    RoadmapMentionRow,
    ("roadmap_id", "theme_id", "sample_hash", "name"),
    "Roadmaps: what scored samples were found to lack, grouped by meaning, with the samples behind each theme.",
    (
        *map(hash_rule, ("roadmap_id", "theme_id", "sample_hash")),
        *map(not_blank, ("name", "suite", "judge", "kind", "theme", "sample_id")),
        not_negative("points_lost"),
        Rule("samples_from_one", "samples", Kind.BETWEEN, {"minimum": 1, "maximum": None}),
    ),
)
