"""A panel: the rows that follow where several judges saw the same audits.

The panel of a model is all its judges in the run. An answer is a judgement; judge errors and rows in quarantine are
none. Target found, verdict and the classes of findings are aggregated as declared (`consensus`), where there are
two answers at least; a reasoning score is the median of the scores that were given, type and place are the majority's.
Findings are merged (`consensus.merge`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import polars as pl

from evalake.contracts.contract import Row
from evalake.contracts.tables.runs import ITEM_KEY
from evalake.core.configuration import UNKNOWN
from evalake.core.files import tables_beside
from evalake.core.hashing import content_hash
from evalake.metrics.agreement import BY_DAWID_SKENE, PANEL, pearson
from evalake.metrics.composite import Composite, Parts
from evalake.metrics.compute import METRIC_ROWS, Metric, measure
from evalake.metrics.estimators import Mean, Ratio
from evalake.metrics.intervals import Array
from evalake.sdk import Derived
from evalake.sdk.results import derived_item
from evalake.suites.solidity_audit import consensus, truth
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.score import UNJUDGED

SUBJECT = ("model", "prompt_type", "replicate", "sample_hash", "prompt_hash", "endpoint")


def panel_name(judges: Iterable[str], aggregated: str = truth.MAJORITY) -> str:
    """Build the name under which a panel's rows are kept: `panel:` and its judges' names, sorted, joined by `+`.

    Where answers are not aggregated by majority, the way and a colon stand between the two.
    """
    return PANEL + ("" if aggregated == truth.MAJORITY else f"{aggregated}:") + "+".join(sorted(judges))


def derive(tables: Mapping[str, pl.DataFrame], options: Mapping[str, Any]) -> Derived:
    """Derive the panel rows of a run from its results and findings, with the manifest's entry for each."""
    results = tables[RESULTS.table]
    judged = tables[FINDINGS.table].select(*FOUND_BY, *_FINDING)
    of_judgement = judged.rows_by_key(FOUND_BY, named=True, include_key=True)
    columns = [*RESULTS.row.model_fields, "dataset_version"]
    of_panel = results.filter(truth.in_panel(options, pl.col("judge")))
    singles = of_panel.select(name for name in columns if name in results.columns)
    aggregated = truth.aggregation(options)
    findings: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    panels = panels_of(singles, lambda row: of_judgement.get(tuple(row[name] for name in FOUND_BY), ()))
    for judges, audits in panels.items():
        name = panel_name(judges, aggregated)
        probes = [audit for audit in audits if audit.members[0]["prompt_type"] == truth.KNOWLEDGE]
        audits = [audit for audit in audits if audit.members[0]["prompt_type"] != truth.KNOWLEDGE]
        for audit in probes:
            rows.append(_probe_row(name, len(judges), audit))
            items.append(derived_item(rows[-1], audit.members[0]))
        pool = (_pool_hash(audits),) if aggregated == truth.DAWID_SKENE else ()
        for audit, word in zip(audits, consensus.AGGREGATIONS[aggregated](audits), strict=True):
            row = panel_row(name, len(judges), audit, word) | {"judge_hash": _panel_hash(name, audit.members, pool)}
            rows.append(row)
            base = {name: row[name] for name in FINDINGS.row.model_fields if name in row and name not in _LANDED}
            findings += consensus.rows(base, word.findings)
            items.append(derived_item(row, audit.members[0]))
    return Derived({RESULTS.table: rows, FINDINGS.table: findings}, items)


def _panel_hash(name: str, members: Sequence[Row], pool: Sequence[str]) -> str:
    """Hash what a panel's row follows from: its judges' calls, each with its endpoint where that is known.

    A call that failed is left out: its reply, once there is one, makes another row, with findings of its own.
    """
    replied = [row for row in members if row["judgement_hash"] is not None or row["judge_error"] is None]
    known = sorted(row["judge_hash"] for row in replied)
    endpoints = sorted(row["judge_endpoint"] for row in replied if row["judge_endpoint"] != UNKNOWN)
    return content_hash([name, known, *pool, *endpoints])


def panels_of(
    results: pl.DataFrame, findings_of: Callable[[Row], Iterable[Row]]
) -> dict[tuple[str, ...], list[consensus.Audit]]:
    """Group the audits of a run by panel (its judges); a model is left out where no two judges saw the same audit.

    Args:
        results: The run's result rows; those of panels are left out.
        findings_of: The findings of a result row, each with its judge.
    """
    singles = results.filter(~pl.col("judge").str.starts_with(PANEL)).sort(*SUBJECT, "judge_hash")
    panels: dict[tuple[str, ...], list[consensus.Audit]] = {}
    for _, of_model in singles.group_by("model", maintain_order=True):
        groups = [group.to_dicts() for _, group in of_model.group_by(*SUBJECT, maintain_order=True)]
        if max(map(len, groups)) >= consensus.FEWEST_ANSWERS:
            audits = panels.setdefault(tuple(sorted(of_model["judge"].unique())), [])
            audits += (_audit(group, findings_of) for group in groups)
    return panels


def _audit(members: Sequence[Row], findings_of: Callable[[Row], Iterable[Row]]) -> consensus.Audit:
    listed = [finding for row in members if row["judge_error"] is None for finding in findings_of(row)]
    return consensus.Audit(members, consensus.merge(listed, numbered=members[0]["prompt_type"] in consensus.NUMBERED))


def _pool_hash(audits: Sequence[consensus.Audit]) -> str:
    """Hash every judgement of the panel: what an aggregation over all audits depends on."""
    return content_hash([[row[name] for name in _IN_POOL] for audit in audits for row in audit.members])


def panel_row(name: str, judges: int, audit: consensus.Audit, word: consensus.Word) -> dict[str, Any]:
    """Build the row of a panel of `judges` judges for an audit, from its members' rows and `word`; no `judge_hash`."""
    first, answers = audit.members[0], audit.answers
    (target_found, found_decided), (verdict, said_decided) = word.target_found, word.verdict
    correct = (verdict is not None and verdict == first["is_vulnerable"]) if said_decided else None
    confidence = median_of(row["confidence"] for row in answers) if said_decided else None
    is_lucky = bool(first["is_vulnerable"] and verdict is True and target_found is False)
    reasoning = {score: median_of(row[score] for row in answers) if target_found else None for score in truth.SCORES}
    hashes = [row["judgement_hash"] for row in audit.members]
    return {
        **{name: value for name, value in first.items() if name in _SAME},
        **UNJUDGED,
        "judge": name,
        "judge_endpoint": UNKNOWN,
        "reply_revision": sum(row["reply_revision"] for row in audit.members),
        "judge_error": None,
        "repaired": None,
        "mended": None,
        "panel_judges": judges,
        "panel_answers": len(answers),
        "panel_undecided": not (found_decided if first["is_vulnerable"] else said_decided),
        "said_vulnerable": verdict,
        "confidence": confidence,
        "detection_correct": correct,
        "calibration_error": None if confidence is None or correct is None else abs(confidence - correct),
        "target_found": target_found,
        "lucky_guess": is_lucky if found_decided and said_decided else None,
        **reasoning,
        **(
            _about_findings(first, answers, target_found, word.findings)
            if len(answers) >= consensus.FEWEST_ANSWERS
            else {}
        ),
        **dict.fromkeys(("latency_ms", "input_tokens", "output_tokens", "cost_usd", "judge_cost_usd")),
        "audit_hash": None,
        "judgement_hash": content_hash(hashes) if any(hashes) else None,
    }


def _probe_row(name: str, judges: int, audit: consensus.Audit) -> dict[str, Any]:
    """Build a panel's row of a knowledge probe, which has nothing to judge."""
    row = panel_row(name, judges, audit, consensus.Word((None, False), (None, False), []))
    return row | UNJUDGED | {"panel_undecided": False, "judge_hash": _panel_hash(name, audit.members, ())}


def _about_findings(
    first: Row, answers: Sequence[Row], target_found: bool | None, findings: Sequence[consensus.Decided]
) -> dict[str, Any]:
    """Compute the columns that follow from the merged findings, and from the judges' answers on the target."""
    counted = consensus.counts(findings)
    matched, partly = (counted[truth.count_column(name)] for name in (truth.TARGET, truth.PARTIAL))
    credit = 1.0 if matched else 0.5 if partly else 0.0
    targets = [number for number, each in enumerate(findings, start=1) if each.classification == truth.TARGET]
    columns = {
        **counted,
        "target_credit": credit if first["is_vulnerable"] else None,
        "target_match_id": targets[0] if targets and target_found else None,
        "type_match": consensus.majority([row["type_match"] for row in answers])[0],
    }
    if target_found:
        hits = {name: [row[name] for row in answers if row[name] is not None] for name in _HITS}
        columns |= {name: consensus.majority(words)[0] for name, words in hits.items()}
        columns["location_line_iou"] = median_of(row["location_line_iou"] for row in answers)
    return columns


_HITS = ("location_function_hit", "location_line_hit")
_LANDED = ("landed_by_run", "origin", "finding_id")
_IN_POOL = ("prompt_hash", "sample_hash", "model", "judge", "judge_hash", "replicate", "judgement_hash")
FOUND_BY = (*ITEM_KEY, "reply_revision")
_FINDING = ("finding_id", "classification", "vulnerability_type_claimed", "severity_claimed", "location_claimed")

_SAME = {
    *("dataset", "sample_id", "sample_hash", "cluster", "model", "prompt_type", "replicate", "prompt_hash", "endpoint"),
    *("scorer_version", "is_vulnerable", "vulnerability_type", "severity", "difficulty_tier", "subject_error"),
    *("empty_kind", "base", "transformation", "code_act", "recognised", "contaminated"),
}


def median_of(values: Iterable[float | None]) -> float | None:
    """Compute the median of the known values; None where there is none."""
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


# Error rates of the judges of a panel by Dawid and Skene: how often each misses what the panel holds to be so.


SLICE = "judge_panel"
"""Its values are pairs, `judge~panel`."""


_WORDS = {"judge": pl.String, "decision": pl.String, "cluster": pl.String, "chance": pl.Float64, "said": pl.Boolean}
_MISSED, _FALSE = (
    Ratio(numerator=chance * wrong, denominator=chance, rows=chance > 0.5)
    for chance, wrong in ((pl.col("chance"), ~pl.col("said")), (1 - pl.col("chance"), pl.col("said")))
)
_RATES = (Metric("judge_miss_rate", _MISSED), Metric("judge_false_alarm_rate", _FALSE))


def judge_errors(frame: pl.DataFrame) -> pl.DataFrame:
    """Measure the error rates of the judges of each panel by Dawid and Skene; no rows where there is no such panel.

    Returns:
        Rows in the columns of `evalake.metrics.compute.measure`, of the slice `judge_panel`;
        n counts the cases with a probability above 0.5.
    """
    known = frame.filter(pl.col("judge").str.starts_with(BY_DAWID_SKENE)).select("model", "judge").unique()
    parts = [pl.DataFrame(schema=METRIC_ROWS)]
    for panel, audits in dawid_skene_panels(frame):
        words = pl.DataFrame(list(_words(audits)), schema=_WORDS)
        measured = measure(words, _RATES, groups=("judge", "decision"), cluster="cluster").filter(pl.col("n") > 0)
        named = measured.with_columns(
            metric=pl.col("metric") + pl.col("decision"),
            slice=pl.lit(SLICE),
            slice_value=pl.col("judge") + f"~{panel}",
            judge=pl.lit(panel),
        )
        models = known.filter(judge=panel).select("model").sort("model")
        parts.append(models.join(named, how="cross", maintain_order="left").select(METRIC_ROWS.keys()))
    return pl.concat(parts)


def dawid_skene_panels(frame: pl.DataFrame) -> Iterator[tuple[str, Sequence[consensus.Audit]]]:
    """Yield the panels of result rows that are aggregated by Dawid and Skene, by name, with their audits."""
    known = set(frame["judge"].drop_nulls().unique()) if "judge" in frame.columns else set()
    if any(judge.startswith(BY_DAWID_SKENE) for judge in known):
        for judges, audits in panels_of(frame, _findings).items():
            if (panel := panel_name(judges, truth.DAWID_SKENE)) in known:
                yield panel, audits


def _findings(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**finding, "judge": row["judge"]} for finding in row.get("findings") or ()]


def _words(audits: Sequence[consensus.Audit]) -> Iterator[dict[str, Any]]:
    """Yield each judge's answer on each decision, yes or no, and the probability that yes is right."""
    judged = zip(
        audits, consensus.on_targets(audits), consensus.on_verdicts(audits), consensus.on_findings(audits), strict=True
    )
    for audit, on_target, on_verdict, classes in judged:
        first = audit.members[0]
        decisions = [("_verdict", audit.words("said_vulnerable"), on_verdict.get(True, 0.0))]
        if first["is_vulnerable"]:
            decisions.append(("", audit.words("target_found"), on_target.get(True, 0.0)))
        for finding, chances in zip(audit.findings, classes, strict=True):
            valid = {judge: kind in truth.VALID for judge, kind in finding.classes.items()}
            decisions.append(("_finding_valid", valid, consensus.is_valid(chances)))
        for decision, words, chance in decisions:
            for judge, word in words.items():
                row = {"judge": judge, "decision": decision, "cluster": first["cluster"]}
                yield row | {"chance": min(chance, 1.0), "said": word is True}


# Judge bias: how a judge's answers depart from the others' on the same audits, and what the departure goes with.


FAMILIES = {word: name for name, words in tables_beside(__file__, "model_families.toml").items() for word in words}
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
        Rows in the columns of `evalake.metrics.compute.measure`, of the slice "all".
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
    listed = given.filter(pl.col("prompt_type").is_in(consensus.NUMBERED), pl.col("findings").list.len() > 0)
    each = listed.select(*AUDIT, "judge", "cluster", "findings").explode("findings").unnest("findings")
    first, last = (pl.col("finding_id").min().over(AUDIT), pl.col("finding_id").max().over(AUDIT))
    words = each.filter(first < last).with_columns(
        word=pl.col("classification").is_in(truth.VALID).cast(pl.Float64), is_first=pl.col("finding_id") == first
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
