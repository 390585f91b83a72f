"""The suite as one object: what flows, storage and reports know of session_review."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from evalake.contracts.tables import HUMAN_LABELS, SAMPLES
from evalake.core.errors import EvalakeError
from evalake.core.files import tables_beside
from evalake.metrics.compute import measure
from evalake.sdk import Conversation, Data, Metrics, Options, Presentation, Prompts, Scoring, Suite, Viewing
from evalake.sdk.figures import Answers, read_figures
from evalake.sdk.json_in_text import json_object
from evalake.sdk.people import people_figures
from evalake.suites.session_review import prompts
from evalake.suites.session_review.baselines import BASELINES
from evalake.suites.session_review.contract import MISSING_TOOLS, OUTCOMES, RESULTS
from evalake.suites.session_review.metrics import BANDS, TOOL_METRICS, in_bands, metrics, tools_named
from evalake.suites.session_review.people import CORRECTED, LABELLING
from evalake.suites.session_review.roadmap import ROADMAP
from evalake.suites.session_review.score import SCORER_VERSION, score
from evalake.suites.session_review.session import FINAL_ANALYSIS, AgentMessage, load, session_text
from evalake.suites.session_review.sources.read import holds_sessions, read_dataset

# How the viewer shows session_review: the points that a judge gave a session, and its words.

_SHOWN: Final = tables_beside(__file__, "presentation.toml")
MOST_OF_A_PART = 110  # characters of alert and first words in a list
TITLES = ("title", "summary", "message", "description", "name", "alertname")  # of an alert, the first that there is


def in_brief(text: str) -> str:
    """Describe what was alerted and how the agent began, in a few words; give the JSON if it is no session."""
    try:
        session = load(text)
    except (EvalakeError, ValueError):
        return text
    short_message = next(
        (each.text for each in session.interactions if isinstance(each, AgentMessage) and each.text), None
    )
    parts = (session.alert_type, _alert_words(session.alert), short_message)
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


_QUOTED = re.compile(r"""["“`]([^"“”`\n]{4,300})["”`]""")
_NUMBERED = re.compile(r"\b(?:turn|step|interaction|event|call) #?(\d{1,4})\b", re.IGNORECASE)
_TOOL = re.compile(r"\b\w+(?:[.-]\w+)+\b")
_AT_END = re.compile(r"\b(?:final analysis|conclusion)\b", re.IGNORECASE)


def remarks(text: str, row: Mapping[str, Any], missing: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Place the judge's words at what they speak of: a numbered turn, a quotation, a tool, or the final analysis."""
    lines = text.split("\n")
    said = [line.strip("-* ") for line in (row["score_analysis"] or "").split("\n") if line.startswith(("-", "*"))]
    placed = [(place, words) for words in said if (place := _place(words, lines)) is not None]
    told = [(each["tool_name"], f"{each['tool_name']} was missed: {each['rationale']}") for each in missing]
    return placed + [(at, words) for tool, words in told if (at := _first(lines, f"- {tool}:")) is not None]


def _place(words: str, lines: Sequence[str]) -> int | None:
    """Find the line that a judge's sentence speaks of."""
    starts = [f"## {number} " for number in _NUMBERED.findall(words)]
    starts += [f"{head}{tool}" for tool in _TOOL.findall(words) for head in ("TOOL CALL ", "- ")]
    found = (_first(lines, text) for text in (*starts, *_QUOTED.findall(words)))
    at = next((line for line in found if line is not None), None)
    return _first(lines, f"# {FINAL_ANALYSIS}") if at is None and _AT_END.search(words) else at


def _first(lines: Sequence[str], text: str) -> int | None:
    return next((number for number, line in enumerate(lines, 1) if text in line), None)


VIEWING = Viewing(
    verdict=pl.when(pl.col("total_score").is_null()).then(pl.col("status")).otherwise(pl.lit("scored")),
    score=pl.col("total_score").cast(pl.Float64),
    error=pl.when(pl.col("status") != "completed").then(pl.coalesce("error_kind", "error_message")),
    flags={
        "below_50": pl.col("total_score") < 50,
        "tools_missing": pl.col("missing_tools").list.len() > 0,
        "parts_do_not_add_up": ~pl.col("breakdown_consistent"),
        "shortened_to_fit": pl.col("cut_interactions") > 0,
    },
    shown=tuple(_SHOWN["viewer"].items()),
    details=tuple(_SHOWN["details"].items()),
    input_text=session_text,
    input_brief=in_brief,
    remarks=remarks,
    deviation=("retest_std", "retest deviation of one score"),
)


# What a report lists of session_review: every scored session, worst first, with the judge's words.


def add_columns(results: pl.DataFrame, tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Add to the results what each session was about, and what the judge named, in words.

    band      the band of its score, or that it has none
    session   its alert and how the agent began, in a few words; null where the session is not kept any more
    failures  the patterns of failure that were found, by comma
    tools     the tools that were missed, by comma
    """
    bands = [f"{lowest} to {highest}" for lowest, highest in BANDS.values()]
    band = in_bands(pl.col("total_score"), bands).fill_null("not scored")
    known = tables[SAMPLES.table].filter(pl.col("sample_hash").is_in(results["sample_hash"].unique().to_list()))
    in_words = pl.col("input").map_elements(in_brief, pl.String)
    sessions = known.unique("sample_hash").select("sample_hash", session=in_words).collect()
    return results.join(sessions, on="sample_hash", how="left", maintain_order="left").with_columns(
        band=band,
        failures=pl.col("failure_tags").list.join(", "),
        tools=pl.col("missing_tools").list.join(", "),
    )


ANSWERS = Answers(
    title="Sessions",
    mistake=pl.col("session_id").is_not_null(),  # every one of them
    sample=("total_score", "session_id", "replicate"),
    group="band",
    label=None,
    shown=tuple(_SHOWN["report"].items()),
    add_columns=add_columns,
)


def _tool_metrics(frame: pl.DataFrame, _: Options) -> pl.DataFrame:
    """Compute how often each tool was missed, counted over sessions and tools, not over scorings."""
    return measure(tools_named(frame.lazy()), TOOL_METRICS)


SUITE = Suite(
    name="session_review",
    title="Session review",
    data=Data(read=read_dataset, starter=("starter",), imports="samples", knows=holds_sessions),
    conversation=Conversation(
        next_request=prompts.converse,
        asks_subject=False,
        baselines=BASELINES,
        default_models=("agents",),
        default_judges=("baseline/rubric-judge",),
        caches_prompts=True,
        fenced=True,
        streams=True,
        usual_replies=("50", ""),
    ),
    prompts=Prompts(
        types=prompts.PROMPT_TYPES,
        parts=prompts.PARTS,
        sets=prompts.SETS,
        check=prompts.check_prompt,
        texts=prompts.templates_of,
    ),
    scoring=Scoring(
        score=score,
        version=SCORER_VERSION,
        results=RESULTS,
        extra_tables=(MISSING_TOOLS,),
        outcomes=OUTCOMES,
        criteria=prompts.criteria_hash_of,
    ),
    metrics=Metrics(
        own=metrics,
        headline=("score_mean", "score_median", "scoring_failure_rate"),
        repeated=pl.col("total_score"),
        inputs=(HUMAN_LABELS,),
        across_rows=_tool_metrics,
        corrected=CORRECTED,
    ),
    presentation=Presentation(
        figures=read_figures(Path(__file__).with_name("figures.toml"), people_figures(LABELLING)),
        answers=ANSWERS,
        viewing=VIEWING,
        queries=tuple(_SHOWN["queries"]),
    ),
    people=LABELLING,
    options=prompts.OPTIONS,
    roadmap=ROADMAP,
)
