"""Error rates of the judges of a panel by Dawid and Skene: how often each misses what the panel holds to be so.

    judge_miss_rate          how often a judge does not say "target found" where it was
    judge_false_alarm_rate   how often it says so where it was not

and the same with the ending `_verdict`, of "vulnerable" as the audit's verdict, and `_finding_valid`, of a finding's
class. The truth is known only as a probability, which weighs each answer: these are the error rates by which Dawid
and Skene weigh judges. They are over all models of a panel, and are repeated for each of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from metrics.compute import METRIC_ROWS, measure
from metrics.definition import Metric
from metrics.estimators import Ratio
from suites.solidity_audit.options import DAWID_SKENE
from suites.solidity_audit.panels.consensus import Audit, is_valid, on_findings, on_targets, on_verdicts
from suites.solidity_audit.panels.rows import panel_name, panels_of
from suites.solidity_audit.taxonomy import VALID

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
        Rows in the columns of `metrics.compute.measure`, of the slice `judge_panel`;
        n counts the cases with a probability above 0.5.
    """
    known = frame.filter(pl.col("judge").str.starts_with(panel_name((), DAWID_SKENE))).select("model", "judge").unique()
    parts = [pl.DataFrame(schema=METRIC_ROWS)]
    for judges, audits in panels_of(frame, _findings).items() if known.height else ():
        panel = panel_name(judges, DAWID_SKENE)
        models = known.filter(judge=panel).select("model").sort("model")
        if models.height:
            words = pl.DataFrame(list(_words(audits)), schema=_WORDS)
            measured = measure(words, _RATES, groups=("judge", "decision"), cluster="cluster").filter(pl.col("n") > 0)
            named = measured.with_columns(
                metric=pl.col("metric") + pl.col("decision"),
                slice=pl.lit(SLICE),
                slice_value=pl.col("judge") + f"~{panel}",
                judge=pl.lit(panel),
            )
            parts.append(models.join(named, how="cross", maintain_order="left").select(METRIC_ROWS.keys()))
    return pl.concat(parts)


def _findings(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**finding, "judge": row["judge"]} for finding in row.get("findings") or ()]


def _words(audits: Sequence[Audit]) -> Iterator[dict[str, Any]]:
    """Yield each judge's answer on each decision, yes or no, and the probability that yes is right."""
    judged = zip(audits, on_targets(audits), on_verdicts(audits), on_findings(audits), strict=True)
    for audit, on_target, on_verdict, classes in judged:
        first = audit.members[0]
        decisions = [("_verdict", audit.words("said_vulnerable"), on_verdict.get(True, 0.0))]
        if first["is_vulnerable"]:
            decisions.append(("", audit.words("target_found"), on_target.get(True, 0.0)))
        for finding, chances in zip(audit.findings, classes, strict=True):
            valid = {judge: kind in VALID for judge, kind in finding.classes.items()}
            decisions.append(("_finding_valid", valid, is_valid(chances)))
        for decision, words, chance in decisions:
            for judge, word in words.items():
                row = {"judge": judge, "decision": decision, "cluster": first["cluster"]}
                yield row | {"chance": min(chance, 1.0), "said": word is True}
