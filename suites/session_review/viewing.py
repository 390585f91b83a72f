"""How the viewer shows session_review: the points that a judge gave a session, and its words."""

import polars as pl

from core.errors import EvalakeError
from suites.base import Sample, Viewing
from suites.base.json_in_text import json_object
from suites.session_review.replies.scores import CATEGORIES
from suites.session_review.session import AgentMessage, load
from suites.session_review.session_text import fit

MOST_CHARACTERS = 1_000_000
MOST_OF_A_PART = 110  # characters of alert and first words in a list
TITLES = ("title", "summary", "message", "description", "name", "alertname")  # of an alert, the first that there is


def session_text(sample: Sample, budget: int = MOST_CHARACTERS) -> str:
    """Write the session as its judge reads it; its JSON where it cannot be read as one."""
    try:
        return fit(load(sample.input), budget).text
    except (EvalakeError, ValueError):
        return sample.input


def in_brief(text: str) -> str:
    """Describe what was alerted and how the agent began, in a few words; give the JSON if it is no session."""
    try:
        session = load(text)
    except (EvalakeError, ValueError):
        return text
    first_words = next(
        (each.text for each in session.interactions if isinstance(each, AgentMessage) and each.text), None
    )
    parts = (session.alert_type, _alert_words(session.alert), first_words)
    return " · ".join(_beginning(part) for part in parts if part)


def _beginning(part: str) -> str:
    """Shorten a part to its first words, with a mark where there are more."""
    words = " ".join(part.split())
    return words if len(words) <= MOST_OF_A_PART else f"{words[:MOST_OF_A_PART].rsplit(' ', 1)[0]} …"


def _alert_words(alert: str) -> str:
    """Extract the words of an alert: of JSON its title or the like, or else all its texts."""
    fields = json_object(alert) or {}
    words = {name: value for name, value in fields.items() if isinstance(value, str)}
    titles = [words[name] for name in TITLES if name in words]
    return titles[0] if titles else ", ".join(words.values()) or alert


VIEWING = Viewing(
    verdict=pl.when(pl.col("total_score").is_null()).then(pl.col("status")).otherwise(pl.lit("scored")),
    score=pl.col("total_score").cast(pl.Float64),
    error=pl.coalesce("error_kind", "error_message"),
    flags={
        "below_50": pl.col("total_score") < 50,
        "tools_missing": pl.col("missing_tools").list.len() > 0,
        "parts_do_not_add_up": ~pl.col("breakdown_consistent"),
        "shortened_to_fit": pl.col("cut_interactions") > 0,
    },
    shown=(
        ("total_score", "points of 100"),
        *((category, category.replace("_", " ")) for category in CATEGORIES),
        ("failure_tags", "patterns of failure"),
        ("missing_tools", "tools missed"),
        ("score_analysis", "the judge's analysis"),
        ("missing_tools_analysis", "on missing tools"),
        ("attempts", "answers until a total"),
        ("cut_chars", "characters cut to fit"),
        ("error_message", "failed because"),
    ),
    details=(("tool_name", "missing tool"), ("rationale", "what it would have changed")),
    input_text=session_text,
    input_brief=in_brief,
)
