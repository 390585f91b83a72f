"""A run's results as files for other tools: JUnit XML, with a test case for each answer."""

from collections import Counter
from xml.etree import ElementTree

import polars as pl

from evalake.reports.gate import xml_text
from evalake.reports.wording import one_line
from evalake.sdk import Suite

LONGEST = 2000  # characters of a text
_KINDS = {"wrong": "failure", "missing": "error", "undecided": "skipped"}


def as_junit(run_id: str, suite: Suite, rows: pl.DataFrame) -> str:
    """Write JUnit XML: wrong is a failure, missing an error, neither right nor wrong is skipped."""
    viewing, missing = suite.presentation.viewing, suite.scoring.outcomes.missing
    nothing = pl.lit(None)
    told = rows.select(
        "dataset",
        "sample_id",
        "prompt_type",
        "replicate",
        *("model", *(["judge"] if suite.is_judged else [])),
        correct=nothing if viewing.correct is None else viewing.correct,
        verdict=(nothing if viewing.verdict is None else viewing.verdict).cast(pl.String),
        error=(nothing if viewing.error is None else viewing.error).cast(pl.String),
        missing=(nothing if missing is None else missing).cast(pl.String),
        seconds=pl.col("latency_ms") / 1000 if "latency_ms" in rows.columns else nothing,
    )
    root = ElementTree.Element("testsuites")
    for (model, *judge), part in told.group_by("model", *(["judge"] if suite.is_judged else []), maintain_order=True):
        named = " · ".join(map(str, (model, *judge)))
        _add(ElementTree.SubElement(root, "testsuite", {"name": _plain(f"{run_id} {named}")}), named, part)
    return xml_text(root)


def _add(parent: ElementTree.Element, classname: str, rows: pl.DataFrame) -> None:
    counts: Counter[str] = Counter()
    for row in rows.iter_rows(named=True):
        name = f"{row['dataset']} {row['sample_id']} {row['prompt_type']} #{row['replicate']}"
        attributes = {"classname": _plain(classname), "name": _plain(name)}
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
            ElementTree.SubElement(case, _KINDS[what], {"message": _plain(message)})
    totals = {"tests": rows.height} | {f"{_KINDS[what]}s": counts[what] for what in ("wrong", "missing")}
    parent.attrib.update({name: str(count) for name, count in (totals | {"skipped": counts["undecided"]}).items()})


def _plain(text: str) -> str:
    return one_line(text, LONGEST)
