"""What a report says about its run: in a few lines, and in full."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reports.decision import Verdict
from reports.report import Report
from reports.wording import UNKNOWN, number, visible
from suites.base.figures import Unit
from suites.base.json_in_text import json_object

_ORIGINS = {"run": "models were called", "import": "recorded results were imported"}


def headline(report: Report) -> list[str]:
    """List run and snapshot, counts, cost, how many models reach the target, and what trivial ones get: a line each."""
    run = report.run
    lines = [
        f"run {_shown(run['run_id'])}, {_shown(run['state'])} · snapshot {_shown(report.snapshot['snapshot_id'])[:12]}",
        f"{_plural(run['samples'], 'sample')} · {_plural(len(run['models']), 'model')}"
        + (f" · judged by {_shown(report.only_judge)}" if report.only_judge else ""),
        f"calls: {_calls(run)} · cost {_paid(run)}",
    ]
    return [*lines, *(line for line in (target_line(report), trivial_line(report)) if line)]


def trivial_line(report: Report) -> str | None:
    """Write what models get that answer every sample alike, whether they ran or not; None where the suite has none."""
    if report.ranking is None or not report.trivial:
        return None
    quantity = report.ranking.quantity
    gets = ", ".join(f"{name} {number(value, quantity.unit)}" for name, value in report.trivial.items())
    return f"to beat: a trivial model gets, in {quantity.label}: {gets}"


def target_line(report: Report) -> str | None:
    """Write how many models reach the target, and how many may or may not; None without a target."""
    if report.target is None or report.ranking is None:
        return None
    decisions = [report.decision(subject) for subject in report.subjects]
    verdicts = [decision and decision.verdict for decision in decisions]
    quantity = report.ranking.quantity
    aim = f"{'at least' if quantity.higher_is_better else 'at most'} {number(report.target, quantity.unit)}"
    unknown = f"; {verdicts.count(None)} unknown" if None in verdicts else ""
    undecided = verdicts.count(Verdict.UNDECIDED)
    open_ = f"; {undecided} undecided (+: about as many more samples would settle it)" if undecided else ""
    reached = f"{verdicts.count(Verdict.PASS)} of {len(verdicts)}"
    return f"{reached} reach the target of {aim} {quantity.label}{open_}{unknown}"


def warnings(report: Report) -> list[str]:
    """List what a reader of the numbers must know first."""
    run = report.run
    own = [_shown(run["message"])] if run.get("message") else []
    if run["rows_quarantined"] and "quarantine" not in (run.get("message") or ""):
        own.append(f"{_plural(run['rows_quarantined'], 'row')} broke the contract: in quarantine, not in the numbers.")
    return [*own, *(_shown(warning) for warning in report.snapshot["warnings"])]


def facts(report: Report) -> list[tuple[str, str]]:
    """List everything that says where the numbers come from, as (what, value)."""
    run, snapshot = report.run, report.snapshot
    return [
        ("run", _shown(run["run_id"])),
        ("state", _shown(run["state"])),
        ("origin", _ORIGINS.get(run["origin"], UNKNOWN)),
        ("started", _moment(run["started_at"])),
        ("ended", _moment(run["ended_at"])),
        ("models", ", ".join(map(_shown, run["models"])) or UNKNOWN),
        ("judges", ", ".join(map(_shown, run["judges"])) or "none"),
        ("datasets", _pairs(run["dataset_versions"])),
        ("parameters", _pairs(run["parameters"])),
        ("samples, items", f"{run['samples']:,}, {run['items']:,}"),
        ("calls", _calls(run)),
        (
            "rows",
            f"{run['rows_landed']:,} landed, {run['rows_already_present']:,} already present, "
            f"{run['rows_quarantined']:,} quarantined",
        ),
        ("tokens", f"{number(run['input_tokens'], Unit.COUNT)} in, {number(run['output_tokens'], Unit.COUNT)} out"),
        ("cost", f"paid: {_paid(run)}; avoided by the ledger: {_cost(run['cost_usd_avoided'])}"),
        ("snapshot", _shown(snapshot["snapshot_id"])),
        ("table versions", _pairs(snapshot["pinned_versions"])),
        ("metric definitions", _shown(snapshot["definition_hash"])),
        ("scorer version", _shown(snapshot["scorer_version"])),
        ("evalake", _shown(snapshot["code_version"])),
        ("seed", _shown(snapshot["seed"])),
        ("Prefect flow run", _shown(run["flow_run_id"])),
    ]


def _shown(value: object) -> str:
    return UNKNOWN if value is None else visible(value)


def _calls(run: Mapping[str, Any]) -> str:
    return f"{run['calls_made']:,} made, {run['calls_from_ledger']:,} from the ledger, {run['calls_failed']:,} failed"


def _paid(run: Mapping[str, Any]) -> str:
    """Write what was paid; where some prices are unknown, the known part of it as the least."""
    if run["cost_usd"] is not None or run.get("calls_unpriced") is None:
        return _cost(run["cost_usd"])
    return (
        f"at least {_cost(run['cost_usd_known'])}, {run['calls_unpriced']:,} of {run['calls_bought']:,} calls unpriced"
    )


def _cost(value: float | None) -> str:
    return "unknown" if value is None else number(value, Unit.US_DOLLARS)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _moment(value: datetime | None) -> str:
    return UNKNOWN if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def _pairs(text: str) -> str:
    """Write a JSON object as `name: value` lines; any other text as it is."""
    read = json_object(text)
    if read is None:
        return visible(text)
    return "\n".join(f"{_shown(key)}: {_pair_value(value)}" for key, value in read.items()) or "none"


def _pair_value(value: Any) -> str:
    return _shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
