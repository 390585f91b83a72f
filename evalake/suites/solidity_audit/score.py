"""An audit and its judgement -> a row of `solidity_audit_results` and its findings: a pure function of the two."""

import json
from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Any

import polars as pl

from evalake.contracts.tables import SAMPLES
from evalake.core.hashing import content_hash
from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange, Item, Options, Sample
from evalake.sdk.results import identity_columns
from evalake.sdk.sample import unit_of
from evalake.sdk.sources import storable, without_nul
from evalake.suites.solidity_audit import replies
from evalake.suites.solidity_audit.contract import (
    COUNTS,
    FINDINGS,
    JUDGED_KEY,
    KEY,
    PROVISIONAL_ERRORS,
    REASONS,
    RESULTS,
)
from evalake.suites.solidity_audit.recorded import NO_CONTRACT, asked_of
from evalake.suites.solidity_audit.truth import (
    CLASSIFICATIONS,
    INVALID,
    KNOWLEDGE,
    MATCHES,
    PARTIAL,
    SCORES,
    STRUCTURED,
    TARGET,
    VALID,
    GroundTruth,
    count_column,
    truth_of,
)

# What a report lists as mistakes: wrong verdicts, lucky guesses and invented findings, with the judge's words.

LINES = 6
"""Lines of a contract that are shown, from the first that is known to be vulnerable."""

_KINDS = {
    "wrong verdict": ~pl.col("detection_correct"),
    "lucky guess": pl.col("lucky_guess"),
    "invented finding": pl.col("hallucinated_findings") > 0,
}
MISTAKE = pl.any_horizontal(*(kind.fill_null(value=False) for kind in _KINDS.values()))


def add_columns(results: pl.DataFrame, tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Add to the results what a mistake is, where in the contract the flaw is, and what the judge said.

    mistake           the kinds of mistake in the row; null where there is none
    contract_excerpt  the contract's lines from the first vulnerable one, or from its beginning; null where unknown
    judge_words       each finding's class and the judge's reason for it, then its reasons about the target
    """
    kinds = [pl.when(kind).then(pl.lit(name)) for name, kind in _KINDS.items()]
    mistake = pl.when(MISTAKE).then(pl.concat_str(*kinds, separator=", ", ignore_nulls=True))
    with_kinds = results.with_columns(mistake=mistake)
    wrong = with_kinds.filter(MISTAKE)
    contracts = _excerpts(tables[SAMPLES.table], wrong["sample_hash"].unique().to_list())
    findings = _findings(tables[FINDINGS.table], wrong)
    reasons = [pl.col(name) for name in REASONS]
    return (
        with_kinds.join(contracts, on="sample_hash", how="left", maintain_order="left")
        .join(findings, on=KEY, how="left", maintain_order="left")
        .with_columns(judge_words=pl.concat_str("finding_words", *reasons, separator="\n", ignore_nulls=True))
        .with_columns(judge_words=pl.when(pl.col("judge_words") != "").then("judge_words"))
        .drop("finding_words")
    )


def _findings(findings: pl.LazyFrame, wrong: pl.DataFrame) -> pl.DataFrame:
    """Join what was said of the findings of each judgement that is in `wrong` into one text per result."""
    claimed = pl.concat_str("vulnerability_type_claimed", "location_claimed", separator=" in ", ignore_nulls=True)
    words = pl.concat_str(
        pl.format("{}. {}", "finding_id", "classification"),
        pl.when(claimed != "").then(pl.format(" ({})", claimed)),
        pl.format(": {}", "reason"),
        ignore_nulls=True,
    )
    ours = findings.join(wrong.lazy().select(KEY), on=KEY, how="semi").sort("finding_id")
    return ours.group_by(KEY, maintain_order=True).agg(finding_words=words.str.join("\n")).collect()


def _excerpts(samples: pl.LazyFrame, hashes: list[str]) -> pl.DataFrame:
    """Cut out the lines at each contract's flaw; samples that were recorded without a contract have none."""
    known = samples.filter(pl.col("sample_hash").is_in(hashes)).unique("sample_hash")
    excerpt = pl.struct("input", "target").map_elements(_excerpt, pl.String)
    return known.select("sample_hash", contract_excerpt=excerpt).collect()


def _excerpt(sample: Mapping[str, Any]) -> str | None:
    if not sample["input"].strip():
        return None
    vulnerable = json.loads(sample["target"] or "{}").get("vulnerable_lines") or [1]
    first = max(min(vulnerable) - 2, 0)
    return dedent("\n".join(sample["input"].split("\n")[first : first + LINES]))


SCORER_VERSION = "7"
LONGEST_ERROR = 500


Columns = dict[str, Any]  # of a row that is being made

LOCATION = ("location_function_hit", "location_line_hit", "location_line_iou")
_VERDICT = ("said_vulnerable", "confidence", "detection_correct", "calibration_error")
_TARGET = ("target_found", "lucky_guess", "type_match", *MATCHES, *SCORES, "target_match_id", "target_credit")
_FINDINGS = (*COUNTS, "finding_precision", "undecided_findings")
UNJUDGED: Columns = {
    **dict.fromkeys((*_VERDICT, *_TARGET, *_FINDINGS, *LOCATION, "contradictions", *REASONS)),
    **{"unknown_finding_ids": [], "repeated_finding_ids": []},
}
"""A row's columns about the judgement, where there is none."""

SINGLE_JUDGE: Columns = {"panel_judges": None, "panel_answers": None, "panel_undecided": None}


def asked(sample: Sample, prompt_type: str) -> replies.Asked:
    """Determine what a judge is asked for about an audit."""
    truth = truth_of(sample)
    if sample.input == NO_CONTRACT:
        return asked_of(truth)
    return replies.Asked(target=truth.is_vulnerable, verdict=prompt_type not in STRUCTURED)


def score(item: Item, answered: Sequence[Exchange], options: Options) -> Mapping[str, Sequence[Columns]]:
    """Build the item's rows, without `landed_by_run` and `origin`, which are added on landing.

    Where the model refused, took too long or gave no text, the row says so: its verdict is incorrect, and it found
    nothing. An audit that no judge was asked about has no row. A judge's failed call gives a provisional row with a
    judge error where that says something about the judge (it took too long or refused), and none where it does not.
    A reply with several judgements gives a row that its contract refuses, as one that contradicts itself does.
    """
    if item.judge is None:
        return {}
    audit, last = answered[0].outcome, answered[-1].outcome
    if item.prompt_type == KNOWLEDGE:
        return {} if isinstance(audit, Failure) else {RESULTS.table: [_probed(item, answered, audit)]}
    if (error := subject_error(item, audit)) is not None:
        reply = audit if isinstance(audit, Reply) else Reply(None, latency_ms=audit.latency_ms)
        kind = reply.empty_kind if isinstance(audit, Reply) and error == EMPTY_REPLY else None
        row = _base(item, answered, reply) | _without_audit(truth_of(item.sample))
        return {RESULTS.table: [row | {"subject_error": error, "empty_kind": kind}]}
    if len(answered) < 2 or not isinstance(audit, Reply):
        return {}
    base = _base(item, answered, audit)
    if not isinstance(last, Reply):
        if last.kind not in PROVISIONAL_ERRORS:
            return {}
        return {RESULTS.table: [base | UNJUDGED | {"judge_error": last.kind, "judgement_hash": None}]}
    reading = replies.read_judgement(last.text, asked(item.sample, item.prompt_type))
    if reading.is_ambiguous and not _is_recorded(item):
        return {RESULTS.table: [base | UNJUDGED | {"contradictions": storable("; ".join(reading.flaws))}]}
    if last.error_kind is not None or reading.judgement is None:
        return {RESULTS.table: [base | UNJUDGED | {"judge_error": _judge_error(last, reading)}]}
    by_rule = item.prompt_type in STRUCTURED and not _is_recorded(item)
    prediction = replies.read_prediction(audit.text) if by_rule else None
    base["mended"] = _mended(reading, prediction)
    row = base | judged(truth_of(item.sample), reading.judgement, prediction)
    if replies.refusing(reading.judgement) or (row["contradictions"] and not _is_recorded(item)):
        return {RESULTS.table: [row]}  # its contract refuses it, and then it has no findings either
    return {RESULTS.table: [row], FINDINGS.table: [_finding_row(base, f) for f in reading.judgement.findings]}


def _probed(item: Item, answered: Sequence[Exchange], reply: Reply) -> Columns:
    """Build the row of a knowledge probe, which is no audit: all about an audit is unknown."""
    return _base(item, answered, reply) | UNJUDGED | dict(replies.probed(reply.text, truth_of(item.sample)))


def subject_error(item: Item, audit: Reply | Failure) -> str | None:
    """Find why the model gave no audit; None where it gave one, or where the failure says nothing about the model."""
    if isinstance(audit, Failure):
        return audit.kind if audit.kind in PROVISIONAL_ERRORS else None
    if item.sample.input == NO_CONTRACT or (audit.text is not None and audit.text.strip()):
        return None
    return _BLANK.get(audit.finish_reason or "", EMPTY_REPLY)


_BLANK = {"content_filter": "content_policy", "length": "token_limit"}
"""Why a reply has no text, by its finish reason."""
EMPTY_REPLY = "timeout"
"""The word for another reply without text, which `empty_kind` names."""


def _without_audit(truth: GroundTruth) -> Columns:
    """Build the columns about a judgement where there was nothing to judge: an incorrect verdict and no finding."""
    return UNJUDGED | {
        "detection_correct": False,
        "target_found": False if truth.is_vulnerable else None,
        "lucky_guess": False,
        **dict.fromkeys(COUNTS, 0),
        "target_credit": 0.0 if truth.is_vulnerable else None,
    }


def judged(truth: GroundTruth, judgement: replies.Judgement, prediction: replies.Prediction | None) -> Columns:
    """Compute the columns about the judgement. `prediction` is what the audit itself states, if it was read by rule."""
    verdict, confidence = _verdict(judgement, prediction)
    target = judgement.target_assessment
    target_found = None if target is None else target.found
    correct = verdict == truth.is_vulnerable
    counts = {name: sum(f.classification == name for f in judgement.findings) for name in CLASSIFICATIONS}
    valid, total = sum(counts[name] for name in VALID), len(judgement.findings)
    credit = 1.0 if counts[TARGET] else 0.5 if counts[PARTIAL] else 0.0
    columns = {
        "said_vulnerable": verdict,
        "confidence": confidence,
        "detection_correct": correct,
        "calibration_error": None if confidence is None else abs(confidence - correct),
        "target_found": target_found,
        "lucky_guess": truth.is_vulnerable and verdict is True and target_found is False,
        **{name: getattr(target, name, None) for name in ("type_match", *MATCHES)},
        **_scores(judgement),
        **_reasons(judgement),
        "target_match_id": next((f.finding_id for f in judgement.findings if f.classification == TARGET), None),
        "unknown_finding_ids": replies.unknown_ids(judgement),
        "repeated_finding_ids": replies.repeated_ids(judgement),
        "contradictions": "; ".join(replies.further(judgement)) or None,
        "total_findings": total,
        "valid_findings": valid,
        "invalid_findings": sum(counts[name] for name in INVALID),
        **{count_column(name): count for name, count in counts.items()},
        "finding_precision": valid / total if total else None,
        "target_credit": credit if truth.is_vulnerable else None,
        "undecided_findings": None,
        **_location(truth, judgement, prediction),
    }
    return columns | dict.fromkeys(_OF_FINDINGS) if judgement.unlisted else columns


_OF_FINDINGS = (*COUNTS, "finding_precision", "target_credit", "location_function_hit")
"""The columns that are unknown where a judgement lists no findings."""


def _verdict(judgement: replies.Judgement, prediction: replies.Prediction | None) -> tuple[bool | None, float | None]:
    if prediction is not None:
        return prediction.said_vulnerable, prediction.confidence
    stated = judgement.overall_verdict
    return (None, None) if stated is None else (stated.said_vulnerable, stated.confidence_expressed)


def _scores(judgement: replies.Judgement) -> Columns:
    """Read the reasoning scores, if the target was found; one out of range is kept anyway, so that it is refused."""
    target = judgement.target_assessment
    found = target is not None and target.found
    given = {column: getattr(target, name, None) for column, name in SCORES.items()}
    kept = {column: each.score for column, each in given.items() if each and (found or not 0 <= each.score <= 1)}
    return dict.fromkeys(SCORES) | kept


def _reasons(judgement: replies.Judgement) -> Columns:
    """Collect the judge's reasons about the target, and its notes; a reason for what was not scored is kept, too."""
    texts = {**dict.fromkeys(REASONS), "judge_notes": judgement.notes}
    if (target := judgement.target_assessment) is not None:
        texts |= {f"{column}_reason": getattr(getattr(target, name), "reason", None) for column, name in SCORES.items()}
        texts["type_match_reason"] = target.type_match_reason
    return {name: without_nul(text) if text is not None and text.strip() else None for name, text in texts.items()}


def _location(truth: GroundTruth, judgement: replies.Judgement, prediction: replies.Prediction | None) -> Columns:
    """Compare where the audit places the target with where it is; null unless it found one."""
    target = judgement.target_assessment
    if not truth.is_vulnerable or target is None or not target.found:
        return dict.fromkeys(LOCATION)
    about = [f for f in judgement.findings if f.finding_id == target.finding_id] or [
        f for f in judgement.findings if f.classification in (TARGET, PARTIAL)
    ]
    claims = [claim for f in about if (claim := _claim(f, prediction)) is not None]
    places = [f.location_claimed for f in about] + [claim.location for claim in claims]
    lines = [line for claim in claims for line in claim.lines]
    words = "; ".join(place for place in places if place)
    return replies.compare(words, lines, truth.vulnerable_functions, truth.vulnerable_lines)


def _claim(finding: replies.Finding, prediction: replies.Prediction | None) -> replies.Claim | None:
    """Look up a finding in the audit itself: a judge numbers the findings of a structured audit in their order."""
    if prediction is None or not 1 <= finding.finding_id <= len(prediction.findings):
        return None
    return prediction.findings[finding.finding_id - 1]


def _mended(reading: replies.Reading, prediction: replies.Prediction | None) -> str | None:
    """Say what was mended in the form of the audit and of the judgement."""
    parts = {"audit": prediction.mended if prediction else (), "judgement": reading.mended}
    said = without_nul("; ".join(f"{name}: {', '.join(mended)}" for name, mended in parts.items() if mended))
    return said[:LONGEST_ERROR] or None


def _is_recorded(item: Item) -> bool:
    return item.sample.input == NO_CONTRACT


def _judge_error(reply: Reply, reading: replies.Reading) -> str:
    if reply.error_kind is not None:
        return reply.error_kind[:LONGEST_ERROR] if reply.error_kind.strip() else "unknown"
    return without_nul(f"unreadable judgement: {'; '.join(reading.flaws)}")[:LONGEST_ERROR]


def _base(item: Item, answered: Sequence[Exchange], audit: Reply) -> Columns:
    sample, truth = item.sample, truth_of(item.sample)
    last = answered[-1].outcome
    return {
        **identity_columns(item, answered, SCORER_VERSION),
        "cluster": unit_of(sample.dataset, sample.cluster or sample.sample_id),
        "is_vulnerable": truth.is_vulnerable,
        "vulnerability_type": truth.vulnerability_type,
        "severity": truth.severity,
        "difficulty_tier": truth.difficulty_tier,
        "base": truth.base or sample.sample_id,
        "transformation": truth.transformation,
        "code_act": truth.code_act,
        "recognised": None,
        "contaminated": None,
        "subject_error": None,
        "empty_kind": None,
        "judge_error": None,
        "repaired": None if sample.input == NO_CONTRACT else len(answered) > 2,
        "mended": None,
        **SINGLE_JUDGE,
        "latency_ms": audit.latency_ms,
        "input_tokens": audit.input_tokens,
        "output_tokens": audit.output_tokens,
        "cost_usd": audit.cost_usd,
        "audit_hash": content_hash([None if audit.text is None else storable(audit.text)]),
        "judgement_hash": _judgement_hash(last) if isinstance(last, Reply) else None,
    }


def _judgement_hash(reply: Reply) -> str:
    return content_hash([None if reply.text is None else storable(reply.text), reply.error_kind])


def _finding_row(base: Columns, finding: replies.Finding) -> Columns:
    stated = finding.model_dump(include={*FINDINGS.column})
    texts = {name: without_nul(value) if isinstance(value, str) else value for name, value in stated.items()}
    return {name: base[name] for name in JUDGED_KEY} | texts
