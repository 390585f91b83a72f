"""Judge bias: how a judge's answers depart from the others' on the same audits, and what the departure goes with.

It is measured against the mean answer of the other judges on the same audit, or on the same finding, so a judge alone
has none. The measures are over all models of a run, and are repeated for each of them:

    judge_bias_verbosity   correlation of the departure on "target found" with the logarithm of the audit's tokens;
                           above 0, it credits long audits more than the other judges do
    judge_bias_own_family  mean departure on "target found" for models of the judge's own family less that for others
    judge_bias_position    mean departure on "the finding is valid" for an audit's first finding less that for others

What such biases are: Zheng et al. (2023), "Judging LLM-as-a-judge with MT-Bench and Chatbot Arena".
"""

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from metrics.agreement import pearson
from metrics.composite import Composite, Parts
from metrics.compute import METRIC_ROWS, measure
from metrics.definition import Metric
from metrics.estimators import Mean
from metrics.intervals import Array
from suites.solidity_audit.panels.findings import NUMBERED
from suites.solidity_audit.taxonomy import VALID

# The first word of a model's name, and the family of models that have it; a name of none of these has no family.
FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("gpt", "chatgpt", "o1", "o3", "o4"), "OpenAI"),
    **dict.fromkeys(("gemini", "gemma"), "Google"),
    **dict.fromkeys(("mistral", "mixtral", "magistral", "ministral", "codestral"), "Mistral"),
    **dict.fromkeys(("qwen", "qwq"), "Qwen"),
    "claude": "Anthropic",
    "llama": "Meta",
    "deepseek": "DeepSeek",
    "grok": "xAI",
    "command": "Cohere",
    "phi": "Microsoft",
    "nova": "Amazon",
}
AUDIT = ("model", "sample_hash", "prompt_type", "replicate")
READ = (*AUDIT, "judge", "cluster", "is_vulnerable", "target_found", "output_tokens", "findings")

_WORD = re.compile(r"o[134]|[a-z]+")


def family(model: str) -> str | None:
    """Look up the family of a model by the last part of its name, `openrouter/anthropic/claude-4` as `claude-4`.

    Names of Bedrock have the vendor before a point, and a region before it: `bedrock/eu.anthropic.claude-4-v1:0`.
    """
    words = map(_WORD.match, model.rsplit("/", 1)[-1].lower().split("."))
    return next((FAMILIES[word.group()] for word in words if word and word.group() in FAMILIES), None)


def judge_bias(frame: pl.DataFrame) -> pl.DataFrame:
    """Measure the biases of each judge of the result rows `frame`, as far as others judged the same audits.

    Returns:
        Rows in the columns of `metrics.compute.measure`, of the slice "all".
    """
    needed = [name for name in READ if name in frame.columns]
    of_judges = [pl.col(name).is_null() for name in ("panel_judges", "judge_error", "subject_error")]
    given = frame.lazy().filter(*of_judges).select(needed).collect()
    measured = [_measured(_on_targets(given), ON_TARGETS), _measured(_on_findings(given), ON_FINDINGS)]
    seen = given.select("model", "judge").unique().sort("model", "judge")
    rows = pl.concat(measured).join(seen, on="judge", maintain_order="left")
    return rows.select(METRIC_ROWS.keys())


def _difference(parts: Parts) -> Array:
    return parts["one"] - parts["other"]


def _contrast(where: pl.Expr) -> Composite:
    """Build the mean departure where `where` is true less that where it is false; null rows are left out."""
    departure = pl.col("departure")
    parts = {"one": Mean(departure, where, -1.0, 1.0), "other": Mean(departure, ~where, -1.0, 1.0)}
    return Composite(_difference, parts, n=departure.is_not_null() & where.is_not_null(), low=-2.0, high=2.0)


ON_TARGETS = (
    Metric("judge_bias_verbosity", pearson(pl.col("departure"), pl.col("length"))),
    Metric("judge_bias_own_family", _contrast(pl.col("own_family"))),
)
ON_FINDINGS = (Metric("judge_bias_position", _contrast(pl.col("is_first"))),)


def _on_targets(given: pl.DataFrame) -> pl.DataFrame:
    """Build one row per vulnerable audit and judge: its departure from the others, audit length and own family."""
    families = {name: family(name) for name in {*given["model"], *given["judge"].drop_nulls()}}
    of_judge, of_model = (
        pl.col(by).replace_strict(families, default=None, return_dtype=pl.String) for by in ("judge", "model")
    )
    judged = given.filter("is_vulnerable").drop_nulls("target_found")
    words = judged.with_columns(word=pl.col("target_found").cast(pl.Float64))
    length = pl.when(pl.col("output_tokens") > 0).then(pl.col("output_tokens").log())
    return _departures(words, AUDIT).with_columns(length=length, own_family=of_judge == of_model)


def _on_findings(given: pl.DataFrame) -> pl.DataFrame:
    """Build one row per finding and judge, of audits with several findings whose numbers are the audit's own."""
    schema: dict[str, Any] = {name: given.schema[name] for name in (*AUDIT, "judge", "cluster")}
    schema |= {"finding_id": pl.Int64, "word": pl.Float64, "is_first": pl.Boolean}
    if "findings" not in given.columns:
        return _departures(pl.DataFrame(schema=schema), (*AUDIT, "finding_id"))
    listed = given.filter(pl.col("prompt_type") == NUMBERED, pl.col("findings").list.len() > 0)
    each = listed.select(*AUDIT, "judge", "cluster", "findings").explode("findings").unnest("findings")
    first, last = (pl.col("finding_id").min().over(AUDIT), pl.col("finding_id").max().over(AUDIT))
    words = each.filter(first < last).with_columns(
        word=pl.col("classification").is_in(VALID).cast(pl.Float64), is_first=pl.col("finding_id") == first
    )
    return _departures(words.select(schema.keys()), (*AUDIT, "finding_id"))


def _departures(words: pl.DataFrame, of: tuple[str, ...]) -> pl.DataFrame:
    """Add each judge's answer less the mean of the others'; what one judge alone saw is left out."""
    word, judges = pl.col("word"), pl.col("judges")
    of_all = words.lazy().with_columns(judges=pl.len().over(of), total=pl.col("word").sum().over(of))
    departures = of_all.filter(judges > 1).with_columns(departure=word - (pl.col("total") - word) / (judges - 1))
    return departures.drop("judges", "total").collect()


def _measured(departures: pl.DataFrame, metrics: tuple[Metric, ...]) -> pl.DataFrame:
    measured = measure(departures, metrics, groups=("judge",), cluster="cluster")
    return measured.filter(pl.col("n") > 0)
