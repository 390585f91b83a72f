"""The original's summaries of a round, recomputed from its own files and compared value by value.

A summary keeps the original's definitions, which differ from this suite's: a lucky guess has no bonus beside it.
Quality is averaged over the audits that found the target, deviations have ddof 1. `invalid` counts hallucinated
findings and every class that is no word of the rubric. Findings of tools are counted as their judge counts them.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from evalake.sdk.json_in_text import objects
from evalake.sdk.lenient_json import name_of
from evalake.suites.solidity_audit.sources import round_files
from evalake.suites.solidity_audit.sources.round_fields import OTHER_CLASSES, found_of, truth_of
from evalake.suites.solidity_audit.sources.round_files import RoundFile, part_of, text_of
from evalake.suites.solidity_audit.truth import CLASSIFICATIONS, SCORES, TYPE_MATCHES, VALID

MOST_NAMED = 3
"""Differing values of a round's summaries that are named."""

_TOTALS = ("target_matches", "partial_matches", "bonus_valid", "invalid", *(c.lower() for c in CLASSIFICATIONS[4:]))
_CLASSES = dict(zip(CLASSIFICATIONS, _TOTALS, strict=True))
Value = Mapping[str, Any]
Truth = Mapping[str, Any]


def compare(
    summaries: Sequence[RoundFile], judgements: Sequence[RoundFile], truths: Callable[[RoundFile], Truth]
) -> list[str]:
    """Write one sentence on the summaries, and one on each judge and model with failed judgements."""
    equal, unknown, differing, failures = 0, 0, [], []
    for summary in summaries:
        of_it = [file for file in judgements if _same_place(file, summary)]
        ours = dict(_leaves(_recomputed(summary, of_it, truths)))
        for name, stated in _leaves(summary.value):
            if name in _ABOUT:
                continue
            if name not in ours:
                unknown += 1
            elif _is_equal(stated, ours[name]):
                equal += 1
            else:
                differing.append(f"{_called(summary)} {name}: {stated} stated, {ours[name]} recomputed")
        failures += _failures(summary, of_it)
    if not summaries:
        return []
    return [_sentence("summaries", len(summaries), equal, unknown, differing), *failures]


def compare_votes(tables: Sequence[round_files.VoteTable], judgements: Sequence[RoundFile]) -> list[str]:
    """Write one sentence on the original's tables of votes: each judge's word on a target, and their agreement."""
    found = {
        (file.path.stem.removeprefix("j_"), place.model, place.judge): _found(file.value)
        for file in judgements
        if (place := file.place) is not None and round_files.stated_failure(file.value) is None
    }
    equal, unknown, differing = 0, 0, []
    for table in tables:
        for row in table.rows:
            name = row.get("sample_id", "")
            words = {judge: word for judge, word in row.items() if isinstance(word, str) and word in _WORDS}
            ours = {judge: _WORDS[found.get((name, table.model, judge))] for judge in words}
            if agreement := row.get("agreement"):
                words["agreement"] = agreement
                ours["agreement"] = _agreement([*ours.values()])
            for judge, word in words.items():
                equal += ours[judge] == word
                unknown += ours[judge] is None
                if ours[judge] not in (None, word):
                    differing.append(f"{judge} on {table.model} {name}: {word} stated, {ours[judge]} recomputed")
    return [_sentence("tables of votes", len(tables), equal, unknown, differing)] if tables else []


_WORDS: Mapping[Any, str | None] = {True: "YES", False: "NO", None: None, "YES": "YES", "NO": "NO"}


def _agreement(words: Sequence[str | None]) -> str | None:
    """Write the agreement of judges as the original does; None where a judge's word is missing."""
    if None in words:
        return None
    yes, judges = words.count("YES"), len(words)
    if yes in (0, judges):
        return f"FULL {'YES' if yes else 'NO'} ({judges}/{judges})"
    return f"SPLIT ({yes}Y/{judges - yes}N)"


def _sentence(what: str, count: int, equal: int, unknown: int, differing: Sequence[str]) -> str:
    named = "; ".join(differing[:MOST_NAMED]) + ("; …" if len(differing) > MOST_NAMED else "")
    differ = f"{len(differing):,} differ ({named})" if differing else "none differs"
    others = f"; {unknown:,} others are not recomputed" if unknown else ""
    return f"the original's {what} ({count}) recomputed: {equal:,} values are equal, {differ}{others}"


def _failures(summary: RoundFile, files: Sequence[RoundFile]) -> list[str]:
    stated = part_of(summary.value, "sample_counts").get("failed_evaluations")
    failed = sum(round_files.stated_failure(file.value) is not None for file in files)
    if not failed and not stated:
        return []
    counted = "no count" if stated is None else stated
    return [f"failed judgements of {_called(summary)}: {failed} read, {counted} in the original's summary"]


def _called(summary: RoundFile) -> str:
    place = summary.place
    assert place is not None
    return f"{place.judge} on {place.model} ({'/'.join(place.section)})"


def _same_place(file: RoundFile, summary: RoundFile) -> bool:
    one, other = file.place, summary.place
    if one is None or other is None:
        return False
    return (one.judge, one.model, one.section) == (other.judge, other.model, other.section)


_ABOUT = frozenset({"detector", "tool", "tier", "judge_model", "judge_family", "timestamp", "prompt_type", "variant"})


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _is_equal(stated: Any, ours: Any) -> bool:
    if isinstance(stated, float | int) and isinstance(ours, float | int):
        return math.isclose(stated, ours, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stated == ours)


def _recomputed(summary: RoundFile, files: Sequence[RoundFile], truths: Callable[[RoundFile], Truth]) -> Value:
    every = [(file.value, truths(file)) for file in files]
    if files and "evaluator_type" in files[0].value:
        return {**_of_rules(every), "by_vulnerability_type": _by_type(every, _of_rules)}
    judged = [(file.value, truths(file)) for file in files if round_files.stated_failure(file.value) is None]
    counts = {
        "total": len(files),
        "successful_evaluations": len(judged),
        "failed_evaluations": len(files) - len(judged),
    }
    if "precision" not in part_of(summary.value, "detection_metrics"):
        return _of_prompt(judged) | {"sample_counts": counts | {"total": len(judged)}}
    detected = _detection_of_tool if "tool" in summary.value else _detection
    classes = _counted if "tool" in summary.value else _classes

    def of_type(part: Judged) -> dict[str, Any]:
        return {
            "total_samples": len(part),
            **detected(part),
            "classifications": classes(part),
            "type_match_distribution": _type_matches(part),
            "quality_scores": _quality(part),
        }

    return {
        "sample_counts": counts,
        "detection_metrics": detected(judged),
        "quality_scores": _quality(judged),
        "classification_totals": classes(judged),
        "type_match_distribution": _type_matches(judged),
        "by_vulnerability_type": _by_type(judged, of_type),
        "performance": {"avg_latency_ms": _mean([_latency(value) for value, _ in judged])},
    }


Judged = Sequence[tuple[Value, Truth]]


def _by_type(judged: Judged, function: Callable[[Judged], dict[str, Any]]) -> dict[str, Any]:
    parts: dict[str, list[tuple[Value, Truth]]] = {}
    for value, truth in judged:
        parts.setdefault(str(truth.get("vulnerability_type", "unknown")), []).append((value, truth))
    return {name: function(part) for name, part in parts.items()}


def _detection(judged: Judged) -> dict[str, Any]:
    valid = [[_class_of(finding) in VALID for finding in _findings(value)] for value, _ in judged]
    bonus = [any(_class_of(finding) == "BONUS_VALID" for finding in _findings(value)) for value, _ in judged]
    total, true = sum(map(len, valid)), sum(map(sum, valid))
    lucky = sum(
        _is_correct(value, truth) and not _found(value) and not other
        for (value, truth), other in zip(judged, bonus, strict=True)
    )
    shown = _shown(judged, total, true, total - true)
    precision, rate = shown["precision"], shown["recall"]
    return shown | {
        "lucky_guess_count": lucky,
        "lucky_guess_rate": _share(lucky, len(judged)),
        "samples_with_bonus": sum(bonus),
        "ancillary_discovery_rate": _share(sum(bonus), len(judged)),
        "invalid_finding_rate": _share(total - true, total),
        "false_alarm_density": _share(total - true, len(judged)),
        "f1_score": 2 * precision * rate / (precision + rate) if precision + rate else None,
    }


def _detection_of_tool(judged: Judged) -> dict[str, Any]:
    """Recompute from what the judge counted of a tool's findings; some of them count neither way."""
    counted = _counted(judged)
    true = sum(counted[name] for name in ("target_matches", "partial_matches", "bonus_valid"))
    false = sum(counted[name] for name in ("invalid", "mischaracterized", "security_theater"))
    shown = _shown(judged, sum(_own_count(value, "total_findings") for value, _ in judged), true, false)
    precision, rate = shown["precision"] if true + false else None, shown["recall"]
    return shown | {
        "precision": precision,
        "f1_score": 2 * precision * rate / (precision + rate) if precision and rate else None,
    }


def _shown(judged: Judged, total: int, true: int, false: int) -> dict[str, Any]:
    samples, found = len(judged), sum(_found(value) for value, _ in judged)
    correct, rate = sum(_is_correct(value, truth) for value, truth in judged), _share(found, samples)
    return {
        "target_found_count": found,
        **dict.fromkeys(("target_detection_rate", "target_found_rate", "recall"), rate),
        "miss_rate": 1 - rate,
        "verdict_correct_count": correct,
        "verdict_accuracy": _share(correct, samples),
        "total_findings": total,
        "avg_findings_per_sample": _share(total, samples),
        "true_positives": true,
        "false_positives": false,
        "precision": _share(true, true + false),
        "fp_rate": _share(false, total),
    }


def _of_prompt(judged: Judged) -> dict[str, Any]:
    """Recompute a summary of the gold standard: classes as judges spell them, types of found targets alone."""
    quality = _quality(judged)
    deviations = {name: value or 0 for name, value in quality.items() if name.startswith("std_") and quality["count"]}
    found = [_found(value) for value, _ in judged]
    said = sum(_said_vulnerable(value) is True for value, _ in judged)
    types = [part_of(value, "target_assessment").get("type_match") for value, _ in judged]
    classes = (str(finding.get("classification")) for value, _ in judged for finding in _findings(value))

    def of_type(part: Judged) -> dict[str, Any]:
        of_part = _shown(part, 0, 0, 0)
        known = {"target_found": of_part["target_found_count"], "detection_rate": of_part["recall"]}
        return {"total_samples": len(part), **known, **_quality(part)}

    return {
        "detection_metrics": {
            **_shown(judged, sum(len(_findings(value)) for value, _ in judged), 0, 0),
            "verdict_correct_count": said,
            "verdict_accuracy": _share(said, len(judged)),
        },
        "quality_scores": {**quality, **deviations},
        "classification_totals": Counter(classes),
        "type_match_distribution": Counter(
            str(word) if is_found else "not_mentioned" for word, is_found in zip(types, found, strict=True)
        ),
        "by_vulnerability_type": _by_type(judged, of_type),
    }


def _quality(judged: Judged) -> dict[str, Any]:
    found = [part_of(value, "target_assessment") for value, _ in judged if _found(value)]
    scores = {short: [_score(target.get(name)) for target in found] for short, name in SCORES.items()}
    known = {short: [value for value in values if value is not None] for short, values in scores.items()}
    return {
        **{f"avg_{short}": _mean(values) for short, values in known.items()},
        **{f"std_{short}": stdev(values) if len(values) > 1 else None for short, values in known.items()},
        "count": len(found),
    }


def _classes(judged: Judged) -> dict[str, int]:
    counted = Counter(
        _CLASSES.get(_class_of(finding), "invalid") for value, _ in judged for finding in _findings(value)
    )
    return {name: counted[name] for name in _TOTALS}


def _type_matches(judged: Judged) -> dict[str, int]:
    stated = Counter(
        text_of(part_of(value, "target_assessment").get("type_match")) or "not_mentioned" for value, _ in judged
    )
    return {name: stated[name] for name in TYPE_MATCHES}


def _of_rules(judged: Judged) -> dict[str, Any]:
    samples = len(judged)
    done = [(value, truth) for value, truth in judged if part_of(value, "metadata").get("timeout") is not True]
    found = sum(part_of(value, "evaluation").get("target_vulnerability_found") is True for value, _ in done)
    correct = sum(part_of(value, "evaluation").get("detection_verdict_correct") is True for value, _ in done)
    findings = sum(part_of(value, "findings_analysis").get("total_findings") or 0 for value, _ in done)
    return {
        "total_samples": samples,
        "successful_analyses": len(done),
        "timeout_count": samples - len(done),
        "timeout_rate": _share(samples - len(done), samples),
        "target_found_count": found,
        "target_found_rate": _share(found, len(done)),
        "verdict_accuracy": _share(correct, len(done)),
        "total_findings": findings,
        "avg_findings_per_sample": _share(findings, len(done)),
    }


def _found(value: Value) -> bool:
    return found_of(part_of(value, "target_assessment")) is True


def _findings(value: Value) -> list[Value]:
    return objects(value.get("findings"))


def _class_of(finding: Value) -> str:
    word = finding.get("classification")
    named = name_of(word) if isinstance(word, str) else ""
    return "" if named in OTHER_CLASSES else named.upper()


def _said_vulnerable(value: Value) -> Any:
    verdict = part_of(value, "overall_verdict")
    return truth_of(verdict.get("said_vulnerable", verdict.get("tool_found_issues")))


def _is_correct(value: Value, truth: Truth) -> bool:
    stated, said = part_of(value, "overall_verdict").get("verdict_correct"), _said_vulnerable(value)
    return stated is True if isinstance(stated, bool) else said is not None and said == truth.get("is_vulnerable", True)


def _counted(judged: Judged) -> dict[str, int]:
    return {name: sum(_own_count(value, name) for value, _ in judged) for name in _TOTALS}


def _own_count(value: Value, name: str) -> int:
    return int(round_files.number_of(part_of(value, "summary").get(name)) or 0)


def _score(value: Any) -> float | None:
    return round_files.number_of(value.get("score") if isinstance(value, Mapping) else value)


def _latency(value: Value) -> float | None:
    return round_files.number_of(value.get("judge_latency_ms", value.get("latency_ms")))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _share(count: float, of: float) -> float:
    """Divide as the original does, which takes 0 for a share of nothing."""
    return count / of if of else 0.0
