"""People's part: which audits are worth their time, the sheets they fill in, and what their words become.

A sheet begins with a line for each audit that was drawn, with contract and audit, to say what the audit concludes:
blind, as nothing tells the truth. What needs the truth comes after all of these, with what is known of the contract:
whether the audit found it, how well, and what each of its findings is, as one judge counted them. No line shows what
judges made of the audit, nor the sample's name, which may tell the truth ("bank-07/patched"). Landed labels have the
name again, by the sample's hash.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from contracts.tables import CALLS, SAMPLES
from contracts.tables.human_labels import HUMAN_LABELS, answered
from core.errors import SourceError, UsageError
from core.hashing import content_hash
from suites.base import Labelling, Labels, Refusal
from suites.base.sheets import NumberedLine
from suites.base.sources import is_storable
from suites.solidity_audit.contract import FINDINGS, RESULTS
from suites.solidity_audit.panels.rows import PREFIX
from suites.solidity_audit.people.compared import DECISIONS, compare_with_people
from suites.solidity_audit.people.join import ANSWER
from suites.solidity_audit.people.questions import CLASSIFICATION, TARGET_FOUND, VERDICT, questions
from suites.solidity_audit.taxonomy import BONUS, CLASSIFICATIONS
from suites.solidity_audit.truth import SUITE, GroundTruth

AUDIT = ("dataset", "sample_id", "sample_hash", "model", "prompt_type", "replicate", "prompt_hash")

DISAGREEMENT, CONFIDENT_AND_WRONG, UNCONFIRMED_BONUS = 4.0, 3.0, 2.0
"""How much more than another audit one is worth a look: judges disagree, it is confidently wrong, a bonus is open."""

CONFIDENT = 0.8

LONGEST_TEXT = 30_000
"""Characters of a contract or an audit that a sheet shows: a cell of a spreadsheet holds few more."""

MATERIAL = ("contract", "audit", "known_vulnerability")
SHOWN = ("vulnerability_type_claimed", "severity_claimed", "location_claimed")
ANSWERS = ("verdict", "target_found", "classification", "rcir", "ava", "fsv", "note")
IDENTITY = (*AUDIT[1:], "judge", "judge_hash", "finding_id", "inclusion_probability")
SHEET = (*IDENTITY, *MATERIAL, *SHOWN, "fill_in", *ANSWERS, "annotator")
NEEDED = ("prompt_hash", "sample_hash", "model")  # without which a file is no sheet
FORMER_ANNOTATOR = "labeller"  # what sheets of before call that column


def candidates(results: pl.DataFrame, findings: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """The audits of a run that nobody has labelled yet, with `weight`: how informative a label would be, from 1."""
    judged = results.filter(pl.col("judge_error").is_null(), ~pl.col("judge").str.starts_with(PREFIX))
    bonus = findings.filter(pl.col("classification") == BONUS).select("prompt_hash", "sample_hash", "replicate")
    words = pl.col("target_found").drop_nulls()
    audits = judged.group_by(AUDIT, maintain_order=True).agg(
        disagree=words.n_unique() > 1,
        confident=((pl.col("confidence") > CONFIDENT) & ~pl.col("detection_correct")).any().fill_null(False),
    )
    key = ["prompt_hash", "sample_hash", "replicate"]
    open_bonus = audits.join(bonus.unique(), on=key, how="semi").select(*key, bonus=pl.lit(True))
    audits = audits.join(open_bonus, on=key, how="left", maintain_order="left")
    done = labels.filter(pl.col("suite") == SUITE).select(ANSWER).unique()
    weight = (
        1
        + DISAGREEMENT * pl.col("disagree").cast(pl.Float64)
        + CONFIDENT_AND_WRONG * pl.col("confident").cast(pl.Float64)
        + UNCONFIRMED_BONUS * pl.col("bonus").fill_null(False).cast(pl.Float64)
    )
    return audits.join(done, on=ANSWER, how="anti", maintain_order="left").select(*AUDIT, weight=weight).sort(AUDIT)


def draw(audits: pl.DataFrame, size: int, seed: int) -> pl.DataFrame:
    """About `size` audits, each with its `inclusion_probability`, which is in proportion to its weight, up to 1.

    A systematic sample in random order (Madow 1949): it has exactly these probabilities, by which estimates from the
    labels are freed from the preference for informative audits. The same seed draws the same.
    """
    if size < 1:
        raise UsageError(f"a sample of {size} audits cannot be drawn: ask for 1 or more")
    if audits.is_empty():
        return audits.with_columns(inclusion_probability=pl.lit(None, pl.Float64))
    chance = inclusion(audits["weight"].to_numpy(), size)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(chance))
    ends = np.cumsum(chance[order])
    ticks = np.arange(rng.random(), ends[-1], 1.0)
    chosen = np.unique(order[np.minimum(np.searchsorted(ends, ticks, side="right"), len(order) - 1)])
    return audits.with_columns(inclusion_probability=pl.Series(chance))[chosen]


def inclusion(weight: np.ndarray[Any, np.dtype[np.float64]], size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Probabilities in proportion to the weights, none above 1, that sum to `size` (to all, where there are fewer)."""
    if size >= len(weight):
        return np.ones(len(weight))
    chance = np.zeros(len(weight))
    certain = np.zeros(len(weight), dtype=bool)
    while True:
        rest = size - certain.sum()
        chance = np.where(certain, 1.0, rest * weight / weight[~certain].sum())
        over = (chance > 1) & ~certain
        if not over.any():
            return np.minimum(chance, 1.0)
        certain |= over


def sheet(drawn: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
    """Write the lines of a sheet, to be filled in.

    Args:
        drawn: The audits.
        tables: Rows of results, findings, samples and calls, by table.

    Returns:
        A line for each audit that tells no truth; then, audit by audit, one with the truth where there is something to
        be found, and one for each finding as the audit's first judge counted them.
    """
    key = ["prompt_hash", "sample_hash", "replicate"]
    results, findings = tables[RESULTS.table], tables[FINDINGS.table]
    judged = results.filter(pl.col("judge_error").is_null(), ~pl.col("judge").str.starts_with(PREFIX))
    first = judged.sort("judge", "judge_hash").unique(key, keep="first", maintain_order=True)
    counted = findings.join(first.select(*key, "judge_hash"), on=[*key, "judge_hash"], how="semi").sort("finding_id")
    by_audit = {k: rows.to_dicts() for k, rows in counted.group_by(key, maintain_order=True)}
    samples = {row["sample_hash"]: row for row in tables[SAMPLES.table].iter_rows(named=True)}
    calls = tables[CALLS.table].select("prompt_hash", "replicate", "response")
    audits = {(prompt_hash, replicate): response for prompt_hash, replicate, response in calls.iter_rows()}
    blind: list[dict[str, Any]] = []
    beside_truth: list[dict[str, Any]] = []
    for audit in drawn.iter_rows(named=True):
        sample = samples.get(audit["sample_hash"], {})
        shared = dict.fromkeys(SHEET) | {name: audit[name] for name in (*AUDIT[1:], "inclusion_probability")}
        shared["sample_id"] = blind_name(audit["sample_hash"])
        shared["contract"] = _cut(sample.get("input"))
        shared["audit"] = _cut(audits.get((audit["prompt_hash"], audit["replicate"])))
        blind.append(shared | {"fill_in": VERDICT})
        truth = GroundTruth.model_validate_json(sample["target"]) if sample.get("target") else None
        with_truth = shared | {"known_vulnerability": None if truth is None else in_words(truth)}
        if truth is None or truth.is_vulnerable:
            beside_truth.append(with_truth | {"fill_in": TARGET_FOUND})
        for finding in by_audit.get(tuple(audit[name] for name in key), []):
            claim = {name: finding[name] for name in (*SHOWN, "judge", "judge_hash", "finding_id")}
            beside_truth.append(with_truth | claim | {"fill_in": CLASSIFICATION})
    return [*blind, *beside_truth]


def in_words(truth: GroundTruth) -> str:
    """Tell what is known of a contract."""
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


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "\n[…]"


def blind_name(sample_hash: str) -> str:
    """What a sheet calls a sample: enough to tell it from others, and nothing about it."""
    return f"sample-{sample_hash[:12]}"


def read_labels(lines: Iterable[NumberedLine], annotator: str, when: datetime) -> Labels:
    """Read the labels of the lines of a sheet; a bad line is refused with its number.

    Args:
        lines: The filled-in lines.
        annotator: Who filled in the lines that do not say so themselves.
        when: When they were filled in.
    """
    rows: dict[str, Mapping[str, Any]] = {}  # by label id: of two answers to one question the last counts
    refused: list[Refusal] = []
    empty = 0
    for number, line in lines:
        where = f"line {number}"
        if isinstance(line, str):
            refused.append(Refusal(where, line))
        elif all(_absent(line.get(name)) for name in ANSWERS if name != "note"):
            empty += 1
        else:
            try:
                labels = _labels(line, annotator, when)
            except SourceError as error:
                refused.append(Refusal(where, str(error)))
            else:
                rows |= {row["label_id"]: row for row in labels}
    return Labels(list(rows.values()), refused, empty)


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _labels(line: Mapping[str, Any], annotator: str, when: datetime) -> list[dict[str, Any]]:
    who = _text(line, "annotator") or _text(line, FORMER_ANNOTATOR) or annotator
    finding = _whole(line, "finding_id")
    classification = _choice(line, "classification", CLASSIFICATIONS)
    if (classification is not None) != (finding is not None) and classification is not None:
        raise SourceError("classification is for the lines of findings, which have a finding_id")
    identity = {name: _needed(line, name) for name in ("sample_id", "sample_hash", "model", "prompt_type")}
    replicate = _whole(line, "replicate") or 0
    judge_hash = _text(line, "judge_hash") if finding is not None else None
    key = [SUITE, _needed(line, "prompt_hash"), identity["sample_hash"], replicate, judge_hash, finding, who]
    word = {
        "label_id": content_hash(key),
        "suite": SUITE,
        **identity,
        "judge": _text(line, "judge") if finding is not None else None,
        "replicate": replicate,
        "finding_id": finding,
        "annotator": who,
        "inclusion_probability": _share(line, "inclusion_probability"),
        "labelled_at": when,
        "note": _text(line, "note"),
    }
    answers = {
        "verdict": _choice(line, "verdict", ("vulnerable", "safe")),
        "target_found": _yes_no(line, "target_found"),
        "classification": classification,
        "root_cause_score": _share(line, "rcir"),
        "attack_vector_score": _share(line, "ava"),
        "fix_score": _share(line, "fsv"),
    }
    return answered(word, answers)


def _text(line: Mapping[str, Any], name: str) -> str | None:
    value = line.get(name)
    if _absent(value):
        return None
    if not isinstance(value, str) or not is_storable(value):
        raise SourceError(f"{name} is not text that can be stored")
    return value.strip()


def _needed(line: Mapping[str, Any], name: str) -> str:
    value = _text(line, name)
    if value is None:
        raise SourceError(f"{name} is missing: keep the columns of the sheet as they were exported")
    return value


def _choice(line: Mapping[str, Any], name: str, allowed: Sequence[str]) -> str | None:
    value = _text(line, name)
    known = {word.lower(): word for word in allowed}
    if value is not None and value.lower() not in known:
        raise SourceError(f"{name} is {ascii(value)[:60]}: write one of {', '.join(allowed)}")
    return None if value is None else known[value.lower()]


def _yes_no(line: Mapping[str, Any], name: str) -> bool | None:
    value = line.get(name)
    if isinstance(value, bool) or _absent(value):
        return value if isinstance(value, bool) else None
    known = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    answer = known.get(str(value).strip().lower())
    if answer is None:
        raise SourceError(f"{name} is {ascii(value)[:60]}: write yes or no")
    return answer


def _share(line: Mapping[str, Any], name: str) -> float | None:
    value = line.get(name)
    if _absent(value):
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(str(value).strip().replace(",", "."))
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise SourceError(f"{name} is {ascii(value)[:60]}: write a number from 0 to 1")
    return number


def _whole(line: Mapping[str, Any], name: str) -> int | None:
    value = line.get(name)
    if _absent(value):
        return None
    text = str(value).strip().removesuffix(".0")
    if isinstance(value, bool) or not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 10:
        raise SourceError(f"{name} is {ascii(value)[:60]}: keep it as it was exported")
    return int(text)


def _sheet(tables: Mapping[str, pl.DataFrame], size: int, seed: int) -> list[dict[str, Any]]:
    results, findings, labels = (tables[contract.table] for contract in (RESULTS, FINDINGS, HUMAN_LABELS))
    return sheet(draw(candidates(results, findings, labels), size, seed), tables)


LABELLING = Labelling(SHEET, NEEDED, MATERIAL, _sheet, read_labels, questions, compare_with_people, DECISIONS)
