"""What judges and experts decided about the same audits, side by side: one row for each decision that both took."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import polars as pl

from evalake.contracts.tables.people import HUMAN_LABELS, YES
from evalake.metrics.agreement import PANEL, cohen_kappa, gwet_ac1, percent_agreement
from evalake.metrics.calibration import equal_width_bin
from evalake.metrics.compute import METRIC_ROWS, Metric, measure, metric_row
from evalake.metrics.corrected import PPIEstimate
from evalake.metrics.estimators import Count
from evalake.sdk import Labelling, Question, Seen, Stage
from evalake.sdk.dataset import represented
from evalake.sdk.people import ANSWER, YES_NO, Correction, paired, powered, yes_no
from evalake.suites.solidity_audit.consensus import NUMBERED, merge
from evalake.suites.solidity_audit.contract import FINDINGS, JUDGED_KEY, RESULTS, VERDICT_WORD
from evalake.suites.solidity_audit.truth import BONUS, CLASSIFICATIONS, SUITE, VALID, GroundTruth

# How people's labels join the results, and the bin of a confidence.


RESULT = (
    *("prompt_hash", "endpoint", "judge_hash", "judge_endpoint"),
    *("sample_hash", "replicate", "reply_revision"),
)

BINS = {k: f"{k / 10:.1f} to {(k + 1) / 10:.1f}" for k in range(10)}

INPUTS = (FINDINGS, HUMAN_LABELS)


def join_inputs(results: pl.LazyFrame, inputs: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Join to the results what the metrics need beside them.

    human_target_found      what most people answer, whichever the judge; null on a tie, or where nobody answered
    human_valid_findings    how many of a judge's findings people call valid; null unless they labelled every one
    human_weight            how many audits it stands for, over all draws; null where it was picked, not drawn
    bonus_confirmed, bonus_rejected  how many bonus findings people judged so, whichever judge's they were shown; a
                            finding they disagree on is neither
    confidence_bin          which tenth the stated confidence is in, as in the calibration error
    findings                id, class, claimed type and place of each of the judge's findings; null without any
    """
    labels = inputs[HUMAN_LABELS.table].filter(pl.col("suite") == SUITE)
    labels = labels.join(results.select(ANSWER).unique(), on=ANSWER, how="semi")
    joined = results.join(_on_audits(labels), on=ANSWER, how="left", maintain_order="left")
    on_findings = _on_findings(labels, results, inputs[FINDINGS.table])
    for more in (on_findings, _findings(inputs[FINDINGS.table])):
        joined = joined.join(more, on=[*RESULT, "scorer_version"], how="left", maintain_order="left")
    every = pl.col("labelled_findings") == pl.col("total_findings")
    return joined.with_columns(
        pl.col("bonus_confirmed", "bonus_rejected").fill_null(0),
        human_valid_findings=pl.when(every).then("human_valid_findings"),
        confidence_bin=equal_width_bin(pl.col("confidence")).replace_strict(BINS, default=None, return_dtype=pl.String),
    ).drop("labelled_findings")


def _on_audits(labels: pl.LazyFrame) -> pl.LazyFrame:
    yes = (pl.col("answer") == YES).filter(pl.col("question") == "target_found").mean()
    answered = labels.group_by(ANSWER).agg(
        human_target_found=pl.when(yes != 0.5).then(yes > 0.5),
        drawn=pl.col("inclusion_probability").is_not_null().any(),
    )
    weight = pl.when("drawn").then("human_weight").alias("human_weight")
    return answered.join(represented(labels, ANSWER), on=ANSWER).with_columns(weight).drop("drawn")


def _findings(findings: pl.LazyFrame) -> pl.LazyFrame:
    fields = pl.struct("finding_id", "classification", "vulnerability_type_claimed", "location_claimed")
    return findings.group_by(*RESULT, "scorer_version").agg(findings=fields)


_valid = pl.col("valid")


def _on_findings(labels: pl.LazyFrame, results: pl.LazyFrame, findings: pl.LazyFrame) -> pl.LazyFrame:
    shown = results.select(*RESULT, "model", "prompt_type", "judge").unique()
    answers = labels.filter(pl.col("finding_id").is_not_null(), pl.col("question") == "classification")
    known = answers.join(shown, on=[*ANSWER, "judge"])
    voted = known.group_by(*RESULT, "finding_id").agg(valid=pl.col("answer").is_in(VALID).mean())
    judged = findings.select(*RESULT, "scorer_version", "finding_id", bonus=pl.col("classification") == BONUS)
    matched = judged.join(voted, on=[*RESULT, "finding_id"])
    labelled = _counted(matched, {"labelled_findings": _valid != 0.5, "human_valid_findings": _valid > 0.5})
    of_every_judge = _on_same_findings(known.collect(), results, findings)
    bonuses = {
        "bonus_confirmed": pl.col("bonus") & (_valid == 1),
        "bonus_rejected": pl.col("bonus") & (_valid == 0),
    }
    shared = _counted(judged.join(of_every_judge, on=[*RESULT, "finding_id"]), bonuses)
    return shared.join(labelled, on=[*RESULT, "scorer_version"], how="full", coalesce=True)


def _counted(findings: pl.LazyFrame, counts: Mapping[str, pl.Expr]) -> pl.LazyFrame:
    sums = [condition.sum().cast(pl.Int64).alias(name) for name, condition in counts.items()]
    return findings.group_by(*RESULT, "scorer_version").agg(sums)


def _on_same_findings(answers: pl.DataFrame, results: pl.LazyFrame, findings: pl.LazyFrame) -> pl.LazyFrame:
    """Count what people say of a finding for every judge and panel that has it, by the rows of their findings.

    Findings of one audit are the same as a panel takes them for (`consensus.merge`).
    """
    schema = pl.Schema({**{name: answers.schema[name] for name in (*RESULT, "finding_id")}, "valid": pl.Float64()})
    if answers.is_empty():
        return pl.LazyFrame(schema=schema)
    audit = ("prompt_hash", "endpoint", "sample_hash", "replicate")
    asked = answers.lazy().select(audit).unique()
    audits = results.select(*RESULT, "judge", "prompt_type").join(asked, on=audit, how="semi").unique()
    seen = findings.join(audits, on=[*RESULT, "judge"]).collect()
    said = dict(answers.group_by(*RESULT, "finding_id").agg(pl.col("answer")).rows_by_key([*RESULT, "finding_id"]))
    rows = []
    for (*_, prompt_type), of_audit in seen.group_by(*audit, "prompt_type", maintain_order=True):
        for same in merge(of_audit.to_dicts(), numbered=prompt_type in NUMBERED):
            keys = [tuple(row[name] for name in (*RESULT, "finding_id")) for row in same.by_judge.values()]
            words = [word for key in keys for (given,) in said.get(key, ()) for word in given]
            if words:
                share = sum(word in VALID for word in words) / len(words)
                rows += [(*key, share) for key in keys]
    return pl.LazyFrame(rows, schema=schema, orient="row").unique([*RESULT, "finding_id"])


DECISIONS = (
    *("verdict", "target found", "type match", "location", "reasoning"),
    *("root cause", "attack vector", "fix", "finding class", "finding valid"),
)

NEAR = 0.25
"""Scores this close are one level of the rubric apart, and agree."""

ACCURATE_FROM, PARTIAL_FROM = 0.75, 0.4
"""The means of the three scores from which reasoning counts as accurate, or as partly so."""

_found, _mean = pl.col("target_found"), pl.mean_horizontal("rcir", "ava", "fsv")
_reasoning = (
    pl.when(_found.is_null() | (_found & _mean.is_null()))
    .then(None)
    .when(_mean >= ACCURATE_FROM)
    .then(pl.lit("accurate"))
    .when(_mean >= PARTIAL_FROM)
    .then(pl.lit("partial"))
    .otherwise(pl.lit("incorrect"))
)
_location = pl.when(~_found).then(pl.lit("no")).otherwise(yes_no(pl.col("location_function_hit")))


def _told(name: str, answer: pl.Expr, *answers: str) -> Question:
    return Question(name, "", answers, near=NEAR, told={"judge": answer})


_ON_AUDITS: Mapping[str, Question] = {
    "verdict": _told("verdict", VERDICT_WORD, "vulnerable", "safe"),
    "target_found": _told("target_found", yes_no(_found), *YES_NO),
    "type_correct": _told("type_match", yes_no(pl.col("type_match").is_in(["exact", "semantic"])), *YES_NO),
    "location_correct": _told("location", _location, *YES_NO),
    "reasoning_quality": _told("reasoning", _reasoning, "accurate", "partial", "incorrect"),
    "root_cause_score": _told("root_cause", pl.col("rcir")),
    "attack_vector_score": _told("attack_vector", pl.col("ava")),
    "fix_score": _told("fix", pl.col("fsv")),
}
"""By the question that people answered: the decision, and the judge's answer on it."""


def compare_with_people(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Pair the answers of a run's judges with all annotators', the judge's first, in the columns of WEIGHED_PAIRS."""
    results, findings, labels = (tables[contract.table] for contract in (RESULTS, FINDINGS, HUMAN_LABELS))
    judged = results.filter(pl.col("judge_error").is_null(), ~pl.col("judge").str.starts_with(PANEL))
    ours = labels.filter(pl.col("suite") == SUITE).join(judged.select(ANSWER).unique(), on=ANSWER, how="semi")
    weighed = ours.join(represented(ours.lazy(), ANSWER).collect(), on=ANSWER)
    answers = weighed.select(
        *(*ANSWER, "judge", "finding_id", "question", "human_weight"), human="answer", human_score="score"
    )
    on_audits = answers.filter(pl.col("finding_id").is_null()).drop("judge", "finding_id")
    on_audits = on_audits.join(judged.with_columns(whose="judge"), on=ANSWER)
    classed = answers.filter(pl.col("finding_id").is_not_null(), pl.col("question") == "classification")
    shown = judged.select(*{*ANSWER, *JUDGED_KEY, "cluster"})
    known = findings.select(*JUDGED_KEY, "finding_id", answer="classification")
    on_findings = classed.join(shown, on=[*ANSWER, "judge"]).join(known, on=[*JUDGED_KEY, "finding_id"])
    on_findings = on_findings.with_columns(whose="judge")
    valid = on_findings.with_columns(yes_no(pl.col(name).is_in(VALID)).alias(name) for name in ("answer", "human"))
    return pl.concat(
        [
            *(
                paired(on_audits.filter(question=name).with_columns(answer=question.told["judge"]), question)
                for name, question in _ON_AUDITS.items()
            ),
            paired(on_findings, Question("finding_class", "", CLASSIFICATIONS)),
            paired(valid, Question("finding_valid", "", YES_NO)),
        ]
    )


# What people are asked about audits.


DISAGREEMENT, CONFIDENT_AND_WRONG, UNCONFIRMED_BONUS = 4.0, 3.0, 2.0
"""What adds to an audit's weight (else 1) in the draw: judges disagree, it is confidently wrong, a bonus is open."""

CONFIDENT = 0.8

Shown = Mapping[str, Callable[[Seen], str | None]]


def _weighed(weight: float, condition: pl.Expr) -> pl.Expr:
    return weight * condition.any().fill_null(value=False).cast(pl.Float64)


WORTH = (
    1
    + DISAGREEMENT * (pl.col("target_found").drop_nulls().n_unique() > 1).cast(pl.Float64)
    + _weighed(CONFIDENT_AND_WRONG, (pl.col("confidence") > CONFIDENT) & ~pl.col("detection_correct"))
    + _weighed(UNCONFIRMED_BONUS, pl.col("bonus_valid_findings") > 0)
)


def _known(seen: Seen) -> str | None:
    truth = _truth(seen)
    return None if truth is None else in_words(truth)


def _truth(seen: Seen) -> GroundTruth | None:
    target = seen.sample.get("target")
    return GroundTruth.model_validate_json(target) if target else None


def _to_be_found(seen: Seen) -> bool:
    truth = _truth(seen)
    return truth is None or truth.is_vulnerable


def in_words(truth: GroundTruth) -> str:
    """Describe what is known of a contract."""
    if not truth.is_vulnerable:
        return "none is known: the contract counts as safe"
    places = [*truth.vulnerable_functions, *(f"line {number}" for number in truth.vulnerable_lines)]
    parts = {
        "type": truth.vulnerability_type,
        "severity": truth.severity,
        "where": ", ".join(places),
        "root cause": truth.root_cause,
        "attack": truth.attack_scenario,
        "fix": truth.fix,
    }
    return "\n".join(f"{name}: {part}" for name, part in parts.items() if part)


def _score(name: str, column: str, title: str, least: str, most: str) -> Question:
    scale = f"From 0 ({least}) to 1 ({most})."
    return Question(name, title, near=NEAR, help=scale, column=column, told={"judge": pl.col(column)})


BLIND: Shown = {"contract": lambda seen: seen.sample.get("input"), "audit": lambda seen: seen.reply}
BESIDE_TRUTH: Shown = {**BLIND, "known_vulnerability": _known}

_VERDICT = Question(
    "verdict", "What does the audit say that the contract is?", ("vulnerable", "safe"), told={"judge": VERDICT_WORD}
)

VERDICT = Stage(
    (_VERDICT,),
    BLIND,
    blind=True,
    words="What the audit concludes, whatever the truth is.",
)
TARGET = Stage(
    (
        # Agreement on it is in `people.agreement`, under names without a decision
        Question("target_found", "Does it name the known vulnerability?", YES_NO),
        _score("root_cause_score", "rcir", "How well does it identify the root cause?", "not at all", "exactly"),
        _score("attack_vector_score", "ava", "How valid is the attack that it describes?", "impossible", "it works"),
        _score("fix_score", "fsv", "Would the fix that it suggests work?", "not at all", "wholly"),
    ),
    BESIDE_TRUTH,
    where=_to_be_found,
    words="Whether the audit finds what is known, and how well.",
)
FINDING = Stage(
    (Question("classification", "What is this finding?", CLASSIFICATIONS),),
    BESIDE_TRUTH,
    each=itemgetter(FINDINGS.table),
    claims=("vulnerability_type_claimed", "severity_claimed", "location_claimed"),
    words="One finding.",
)

LABELLING = Labelling(
    SUITE,
    (VERDICT, TARGET, FINDING),
    unit=ANSWER,
    worth=WORTH,
    counted=pl.col("judge_error").is_null() & ~pl.col("judge").str.starts_with(PANEL),
    compare=compare_with_people,
    decisions=DECISIONS,
)


# Judges against people: their agreement, where they differ, and rates corrected by people's labels.


_judge, _human = pl.col("target_found"), pl.col("human_target_found")
_both = pl.col("is_vulnerable") & _judge.is_not_null() & _human.is_not_null()
_words = pl.when(_both).then(_judge), pl.when(_both).then(_human)
_weight = pl.col("human_weight").fill_null(1.0)  # a label that was picked, not drawn, counts once

METRICS: tuple[Metric, ...] = (
    Metric("judge_human_kappa", cohen_kappa(*_words, (True, False), _weight)),
    Metric("judge_human_ac1", gwet_ac1(*_words, (True, False), _weight)),
    Metric("judge_human_agreement", percent_agreement(*_words, _weight)),
    *(
        Metric(f"judge_{'found' if judge else 'missed'}_human_{'found' if human else 'missed'}", Count(both, _both))
        for judge in (True, False)
        for human in (True, False)
        for both in (((_judge == judge) & (_human == human)).fill_null(False),)
    ),
)
"""On target found: agreement beyond chance, agreement, and the four cells of the confusion matrix.

Agreement is estimated for all audits from those that were drawn; the cells count those that people answered.
"""


def judge_against_people(frame: pl.DataFrame) -> pl.DataFrame:
    """Compute `METRICS` and the corrected rates of every model and judge with labels, in the columns of `measure`."""
    labelled = frame.filter(pl.col("human_target_found").is_not_null() | pl.col("human_valid_findings").is_not_null())
    known = labelled.select("model", "judge").unique()
    if known.is_empty():
        return pl.DataFrame(schema=METRIC_ROWS)
    of_known = frame.join(known, on=["model", "judge"], how="semi", maintain_order="left")
    measured = measure(of_known, METRICS, cluster="cluster")
    rows = [
        _row(model, judge, f"{name}_corrected", correction.by_people(rows))
        for (model, judge), rows in of_known.sort("model", "judge").group_by("model", "judge", maintain_order=True)
        for name, correction in CORRECTED.items()
    ]
    return pl.concat([measured.select(METRIC_ROWS.keys()), pl.DataFrame(rows, schema=METRIC_ROWS)])


def target_detection_rate(rows: pl.DataFrame) -> PPIEstimate | None:
    """Estimate the share of targets that people would say were found."""
    judged = rows.filter(pl.col("is_vulnerable"), _judge.is_not_null())
    return powered(judged, "target_found", None, "human_target_found")


def finding_precision(rows: pl.DataFrame) -> PPIEstimate | None:
    """Estimate the share of all findings that people would call valid.

    Audits without findings are left out: they add nothing to either sum, and cannot be labelled. With them among the
    samples, labels would be a sample of the others only, and the estimate too high.
    """
    judged = rows.filter(pl.col("total_findings") > 0)
    return powered(judged, "valid_findings", "total_findings", "human_valid_findings")


_audited = pl.when("is_vulnerable", _judge.is_not_null()).then(pl.col("subject_error").is_null())

CORRECTED: Mapping[str, Correction] = {
    "target_detection_rate": Correction(target_detection_rate, "target found", judged=_audited),
    "finding_precision": Correction(finding_precision, "finding class", frozenset(VALID)),
}
"""How the metrics that people correct are corrected; their names end with `_corrected` beside the raw ones."""


def _row(model: Any, judge: Any, name: str, estimate: PPIEstimate | None) -> dict[str, Any]:
    labels, units = (0, 0) if estimate is None else (estimate.labels, estimate.units)
    numbers = {number: getattr(estimate, number, None) for number in ("value", "se", "ci_low", "ci_high")}
    row = metric_row(model, judge, name, n=labels, units=units, **numbers)
    return row | {"reliable": row["reliable"] and not (estimate is not None and estimate.marked)}
