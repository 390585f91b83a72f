"""What is in a report, for machines and other tools: JSON, JUnit XML for build servers, Markdown for pull requests."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

import polars as pl

from evalake.core.hashing import plain
from evalake.reports.coverage import as_objects
from evalake.reports.gate import LONGEST, Gate, short
from evalake.reports.ranking import Verdict
from evalake.reports.report import Report
from evalake.reports.wording import UNKNOWN, lacking, markdown_text, multiplicity, one_line, p_value
from evalake.sdk import Suite

LONGEST_TEXT = 2000  # characters of a text of a result
_KINDS = {"wrong": "failure", "missing": "error", "undecided": "skipped"}


def as_json(data: Any) -> str:
    """Write data as JSON, as a report's file holds it."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)


def as_data(report: Report) -> dict[str, Any]:
    """Convert everything but the figures to what JSON has; unknown numbers are null."""
    data = {
        "title": report.title,
        "run": dict(report.run),
        "snapshot": dict(report.snapshot),
        "target": None
        if report.target is None or report.ranking is None
        else {"metric": report.ranking.quantity.metric, "value": report.target},
        "trivial": dict(report.trivial),
        "ranking": [_place(report, subject) for subject in report.subjects],
        "comparisons": [
            {"judge": judge, **asdict(comparison), "apart": comparison.apart}
            for judge, compared in report.comparisons.items()
            for comparison in compared
        ],
        "coverage": as_objects(report.coverage),
        "missing": [asdict(each) for each in report.missing],
        "metrics": report.metrics.to_dicts(),
        "by_chance": multiplicity(report.metrics["ci_low"].count()),
    }
    return {key: plain(value) for key, value in data.items()}


def _place(report: Report, subject: Any) -> dict[str, Any]:
    standing, lacking = report.standings[subject], report.lacking(subject)
    decision, limits = report.decision(subject), report.limits.get(subject)
    low, high = (None, None) if limits is None else limits.whatever
    return {
        "model": subject.model,
        "judge": subject.judge,
        "rank": standing.rank,
        "letters": standing.letters if any(report.comparisons.values()) else None,
        "value": standing.value,
        "decision": None if decision is None else decision.verdict.value,
        **{name: getattr(decision, name, None) for name in ("more_samples", "more_at_least", "reason")},
        "limit_low": low,  # the limits that decide, which are exact and hold for any missing values
        "limit_high": high,
        "missing": 0 if lacking is None else lacking.missing,
        "missing_share": 0.0 if lacking is None else lacking.missing / lacking.items,
        "missing_kinds": {} if lacking is None else dict(lacking.kinds),
    }


# JUnit XML and Markdown.


def junit_of_gate(gate: Gate) -> str:
    """Write JUnit XML: a test case for each rule and model; what is undecided is an error, lest it show green."""
    counts = Counter(check.decision.verdict for check in gate.checks)
    totals = {
        "tests": str(len(gate.checks)),
        "failures": str(counts[Verdict.FAIL]),
        "errors": str(counts[Verdict.UNDECIDED]),
    }
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"evalake gate {short(gate.run)}", **totals})
    for check in gate.checks:
        names = {"classname": short(check.subject), "name": short(check.rule)}
        case = ElementTree.SubElement(suite, "testcase", names)
        kind = {Verdict.FAIL: "failure", Verdict.UNDECIDED: "error"}.get(check.decision.verdict)
        if kind is None:
            ElementTree.SubElement(case, "system-out").text = short(check.detail)
        else:
            attributes = {"type": str(check.decision.verdict), "message": short(check.detail)}
            ElementTree.SubElement(case, kind, attributes)
    if gate.notes:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(map(_text, gate.notes))
    return xml_text(root)


def xml_text(root: ElementTree.Element) -> str:
    """Write XML with its declaration, indented."""
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def markdown_of_gate(gate: Gate) -> str:
    """Write Markdown: the verdict as a heading, a table, and warnings below."""
    lines = [
        f"### {_marked(gate.summary)}",
        "",
        "| verdict | rule | model | units | what decided |",
        "|---|---|---|---|---|",
    ]
    for check in gate.checks:
        cells = (check.decision.verdict, check.rule, check.subject, check.counted, check.detail)
        lines.append(f"| {' | '.join(map(_marked, cells))} |")
    lines += ["", *(f"* {_marked(note)}" for note in gate.notes)] if gate.notes else []
    return "\n".join(lines) + "\n"


def markdown_of_comparison(rows: pl.DataFrame, notes: Sequence[str]) -> str:
    """Write compared rows, adjusted by Holm, as a table for each pair of sides and judge, and notes below."""
    lines = []
    for (a, b, judge), own in rows.group_by("a", "b", "judge", maintain_order=True):
        judged = "" if judge is None else f", judged by {_marked(judge)}"
        first, other = (lacking(own.select(name).max().item()) for name in ("missing_a", "missing_b"))
        lines += [
            f"### {_marked(a)}{first} − {_marked(b)}{other}{judged}",
            "",
            "| metric | A | B | A − B [95 %] | p (Holm) | units |",
        ]
        lines += ["|---|---:|---:|---:|---:|---:|", *(_line(row) for row in own.iter_rows(named=True)), ""]
    lines += [f"* {_marked(note)}" for note in notes]
    return "\n".join(lines).rstrip() + "\n"


def _line(row: Mapping[str, Any]) -> str:
    part = "" if row["slice"] == "all" else f", {row['slice']} {row['slice_value']}"
    ends = "" if row["ci_low"] is None or row["ci_high"] is None else f" [{row['ci_low']:+.3g} {row['ci_high']:+.3g}]"
    numbers = [UNKNOWN if row[name] is None else f"{row[name]:.4g}" for name in ("value_a", "value_b")]
    p = p_value(row["p_holm"])
    difference = UNKNOWN if row["difference"] is None else f"{row['difference']:+.3g}{ends}"
    return f"| {_marked(row['metric'] + part)} | {' | '.join((*numbers, difference, p, str(row['units'])))} |"


def junit_of_results(run_id: str, suite: Suite, rows: pl.DataFrame, absent: pl.DataFrame) -> str:
    """Write JUnit XML: wrong is a failure, missing an error, neither right nor wrong is skipped.

    `absent` has the items without a row, and `why`.
    """
    viewing, missing = suite.presentation.viewing, suite.scoring.outcomes.missing
    nothing = pl.lit(None)
    told = rows.select(
        "dataset",
        "sample_id",
        "prompt_type",
        "replicate",
        *("model", *(["judge"] if suite.is_judged else [])),
        **viewing.told,
        missing=(nothing if missing is None else missing).cast(pl.String),
        seconds=pl.col("latency_ms") / 1000 if "latency_ms" in rows.columns else nothing,
    )
    told = pl.concat([told, absent.with_columns(missing="why")], how="diagonal_relaxed")
    root = ElementTree.Element("testsuites")
    for (model, *judge), part in told.group_by("model", *(["judge"] if suite.is_judged else []), maintain_order=True):
        named = " · ".join(map(str, (model, *judge)))
        _add_cases(ElementTree.SubElement(root, "testsuite", {"name": _text(f"{run_id} {named}")}), named, part)
    return xml_text(root)


def _add_cases(parent: ElementTree.Element, classname: str, rows: pl.DataFrame) -> None:
    counts: Counter[str] = Counter()
    for row in rows.iter_rows(named=True):
        name = f"{row['dataset']} {row['sample_id']} {row['prompt_type']} #{row['replicate']}"
        attributes = {"classname": _text(classname), "name": _text(name)}
        if row["seconds"] is not None:
            attributes["time"] = f"{row['seconds']:.3f}"
        case = ElementTree.SubElement(parent, "testcase", attributes)
        if row["missing"] is not None:
            what = "missing"
        else:
            what = {True: "right", False: "wrong", None: "undecided"}[row["correct"]]
        counts[what] += 1
        if what in _KINDS:
            message = " ".join(text for text in (row["verdict"], row["error"] or row["missing"]) if text) or what
            ElementTree.SubElement(case, _KINDS[what], {"message": _text(message)})
    totals = {"tests": rows.height} | {f"{_KINDS[what]}s": counts[what] for what in ("wrong", "missing")}
    parent.attrib.update({name: str(count) for name, count in (totals | {"skipped": counts["undecided"]}).items()})


def _text(text: str) -> str:
    return one_line(text, LONGEST_TEXT)


def _marked(text: object) -> str:
    return markdown_text(text, LONGEST)
