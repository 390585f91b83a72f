"""Gate: hold a measured run against rules, on its own or beside a baseline; PASS, FAIL or UNDECIDED, rule by rule."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from evalake.contracts.tables import RUN_ITEMS
from evalake.core.errors import UsageError
from evalake.decisions.compare import compare_found, lacks_of, rows_of
from evalake.decisions.rules import Change, Level, Target, read_rule, require_known, require_within
from evalake.decisions.sides import Side, find_side
from evalake.metrics.compare import SIGNIFICANT_BELOW, with_holm
from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Count, Maximum, Mean, Rate, Total
from evalake.metrics.limits import ERROR, Ends, limits_of, measure_exact, open_bounds, range_of, widened, within
from evalake.metrics.power import FEWEST_UNITS, Anytime
from evalake.metrics.variance import Deviation, Repeats
from evalake.reports.gate import Checked, Gate, by_chance
from evalake.reports.ranking import (
    Decision,
    Verdict,
    as_judged,
    decide,
    decide_whatever_is_missing,
    of_whole_run,
    too_few,
)
from evalake.storage.lake import Lake
from evalake.storage.snapshots import read_metrics
from evalake.suites.registry import suite as find_suite
from evalake.tasks import measure
from evalake.tasks.corrected import correction_notes, corrections

BARE = (Count, Maximum, Total)
"""Estimators without uncertainty: the observed value decides by itself."""

NO_CLAIM = "nothing is claimed either way; hold a median to the rule"
"""What is said of amounts whose limits may be too narrow."""

ROUNDING = 1e-9
"""A sum that differs from a rule's number by less, relative to it, is that number."""

Subject = tuple[str, str | None]  # model and judge


@dataclass(frozen=True, slots=True)
class Look:
    """One of several looks at a gate whose samples grow: its intervals are wider, so that all looks together hold."""

    anytime: Anytime
    is_last: bool
    """Whether no more samples will come; before, a change that is not significant may become so."""


def hold_gate(
    lake: Lake,
    run: str,
    rules: Sequence[str],
    *,
    baseline: str | None = None,
    force: bool = False,
    look: Look | None = None,
    adjust: bool = False,
    corrected: bool = False,
) -> Gate:
    """Hold a run against rules.

    Args:
        lake: The lake that holds the run and the baseline.
        run: A run, a snapshot, or RUN:MODEL.
        rules: In the grammar of `evalake.decisions.rules`.
        baseline: What rules about changes compare with, named alike.
        force: Compare with a baseline that does not mean the same, with a warning.
        look: Which look it is, where samples come in rounds; none means the only one.
        adjust: Hold all level rules together to the error of one (Bonferroni 1936).
        corrected: Correct rates by people's labels, or a calibration, where there are.

    Raises:
        UsageError: A name stands for nothing, or a rule cannot be read.
        NotComparableError: Run and baseline do not compare.
    """
    read = [read_rule(text) for text in dict.fromkeys(rules)]
    if not read:
        raise UsageError('a gate without rules holds nothing: give --rule "METRIC >= NUMBER"')
    changes = [rule for rule in read if isinstance(rule, Change)]
    if changes and baseline is None:
        raise UsageError(f'the rule "{changes[0].text}" needs a --baseline to compare with')
    side = _side(lake, run)
    other = None if baseline is None else _side(lake, baseline)
    measured = _Measured(lake, side, look, corrected=corrected)
    for rule in read:
        require_known(rule, measured.known)
        if (metric := measured.declared.get(rule.target.metric)) is not None:
            require_within(rule, range_of(metric.estimator))
    levels = measured.limited([rule for rule in read if isinstance(rule, Level)], adjust=adjust)
    compared, warnings = _compared(lake, side, other, changes, force=force, corrected=corrected)
    if baseline is not None and not changes:
        example = f"no significant drop in {read[0].target.metric}"
        warnings = [f'no rule compares with the baseline {baseline}: one like "{example}" does']
    if corrected:
        subjects = dict.fromkeys(subject for rule in read for subject in measured.subjects(rule.target))
        notes = correction_notes(measured.corrected, [rule.target.metric for rule in read], subjects)
        warnings = [*warnings, *notes]
    checks = []
    for rule in read:
        held = measured.hold(rule) if isinstance(rule, Level) else _hold_change(rule, compared, measured)
        checks += [_not_passed_by_part(check, side) for check in held]
    family = [] if look is not None else by_chance(levels, adjusted=adjust)
    return Gate(run, baseline, checks, [*_warnings(side), *warnings], family)


def _side(lake: Lake, name: str) -> Side:
    side = find_side(lake, name, None)
    if side.prompt_type is not None:
        part = f"METRIC[prompt_type={side.prompt_type}]"
        raise UsageError(f"{name} is a part of a run: name its run or model, and {part} in the rule")
    return side


class _Measured:
    """The values of a snapshot by target and subject (model and judge), with the limits that decide about them."""

    def __init__(self, lake: Lake, side: Side, look: Look | None, *, corrected: bool) -> None:
        """Read the values of the snapshot, the rows behind it, what it lacks, and how its rates are corrected."""
        suite = find_suite(side.run["suite"], lake)
        self.models, self.look = side.models, look
        self.frame = rows_of(lake, suite, side)
        self.lacks = lacks_of(lake, suite, side, self.frame)
        self.corrected = corrections(lake, side.snapshot, self.frame) if corrected else {}
        items = lake.frame(RUN_ITEMS).filter(pl.col("run_id") == side.run["run_id"])
        self.asked = {*items.select("model", "judge").unique().collect().iter_rows()}
        metrics = read_metrics(lake, side.snapshot["snapshot_id"]).filter(pl.col("model").is_in(side.models))
        self.rows: dict[tuple[Target, Subject], dict[str, Any]] = {}
        for row in metrics.iter_rows(named=True):
            target = Target(row["metric"], row["slice"], row["slice_value"])
            self.rows[target, (row["model"], row["judge"])] = row
        self.known = {target for target, _ in self.rows}
        declared = suite.all_metrics(json.loads(side.snapshot["options"]))
        self.declared = {each.name: each for each in declared}
        self.bare = {each.name for each in declared if isinstance(each.estimator, BARE)} | set(measure.METRICS)
        self.exact: dict[tuple[Target, Subject], dict[str, Any]] = {}
        self.error = ERROR

    def limited(self, rules: Sequence[Level], *, adjust: bool) -> int:
        """Measure the exact limits of what level rules are about, and count the checks that there are of them."""
        checks = sum(len(self.subjects(rule.target)) for rule in rules if rule.target.metric not in self.bare)
        self.error = ERROR / checks if adjust and checks else ERROR
        slices: dict[str, set[str]] = {}
        for rule in rules:
            slices.setdefault(rule.target.metric, set()).add(rule.target.slice)
        metrics = [
            replace(self.declared[name], slices=tuple(sorted(of_metric)))
            for name, of_metric in slices.items()
            if name in self.declared and name not in self.bare
        ]
        if metrics and not self.frame.is_empty():
            for row in measure_exact(self.frame, metrics, self.error).iter_rows(named=True):
                target = Target(row["metric"], row["slice"], row["slice_value"])
                self.exact[target, (row["model"], row["judge"])] = row
        return checks

    def _widened(self, target: Target, subject: Subject, row: Mapping[str, Any]) -> Ends:
        """Compute the limits over all values of missing rows; none for metrics that do not follow from single rows."""
        lacks, metric = self.lacks.get(subject), self.declared.get(target.metric)
        if target.metric in measure.METRICS or (lacks is None and metric is None):
            return row["ci_low"], row["ci_high"]
        if metric is None:
            return None, None
        model, judge = subject
        rows = self.frame.filter(pl.col("model") == model, pl.col("judge").eq_missing(judge))
        absent, opened = (0, rows.clear()) if lacks is None else lacks.unknown
        if target.slice != "all":
            ours = pl.col(target.slice).cast(pl.String) == target.slice_value
            rows, opened = rows.filter(ours), None if opened is None else opened.filter(ours)
        if isinstance(metric.estimator, Maximum | Total):
            return row["ci_low"], row["ci_high"]
        ends = open_bounds(rows, replace(metric, slices=("all",)), (absent, opened))
        if ends is not None and (moved := row["value"] - self.rows[target, subject]["value"]):
            ends = ends[0] + moved, ends[1] + moved
        return widened(row, metric, ends, self.error)

    def subjects(self, target: Target) -> list[Subject]:
        """Pair models with judges that the metric is known of and that were asked: without a value it is undecided."""
        judges = {judge for known, (_, judge) in self.rows if known == target}
        pairs = ((model, judge) for model in self.models for judge in sorted(judges, key=lambda name: name or ""))
        return [each for each in pairs if each in self.asked or (target, each) in self.rows]

    def _is_unbounded(self, metric: Metric | None) -> bool:
        """Tell whether few amounts or differences can make most of it; it is not `reliable` then."""
        if metric is not None and isinstance(metric.estimator, Deviation | Repeats):
            return math.isinf(range_of(metric.estimator)[1])
        if metric is None or not isinstance(metric.estimator, Mean) or metric.estimator.low != 0:
            return False
        kind = self.frame.lazy().select(metric.estimator.quantity).collect_schema().dtypes()[0]
        return math.isinf(metric.estimator.high) and not (kind.is_integer() or kind == pl.Boolean)

    def hold(self, rule: Level) -> Iterator[Checked]:
        """Hold the run's values against a number."""
        for subject in self.subjects(rule.target):
            row = self.rows.get((rule.target, subject), {})
            known = self.corrected.get((*subject, rule.target.metric)) if rule.target.slice == "all" else None
            if known is not None:
                row = row | {name: getattr(known, name) for name in ("value", *ENDS, "units", "reliable")}
            value, shown = row.get("value"), (row.get("ci_low"), row.get("ci_high"))
            lacks = self.lacks.get(subject)
            missing = 0.0 if lacks is None else lacks.count / lacks.items
            if value is None:
                reason = "it has no value"
                yield Checked(
                    rule.text, *subject, Decision(Verdict.UNDECIDED, reason=reason), missing=missing, reason=reason
                )
                continue
            units = row.get("units") or row["n"]
            is_bare = rule.target.metric in self.bare
            metric = self.declared.get(rule.target.metric)
            exact = self.exact.get((rule.target, subject), row)
            if known is not None and metric is not None:
                limits = limits_of(known, metric.estimator, self.error)
                exact = row | {"n_eff": None} | dict(zip(ENDS, limits, strict=True))
            held = row | {"units": units, "n_eff": exact.get("n_eff") if self.look is None else None}
            held["trials"] = held["n_eff"] if metric is not None and type(metric.estimator) is Rate else None
            at = rule.number if math.isclose(value, rule.number, rel_tol=ROUNDING) else value
            held["alike"] = worth = min(units, exact.get("units") or units)
            held |= dict.fromkeys(ENDS, at) if is_bare else {name: exact[name] for name in ENDS}
            if self.look is not None:
                wider = self.look.anytime.widened(value, held["ci_low"], held["ci_high"], worth)
                held |= dict(zip(ENDS, wider if metric is None else within(wider, metric.estimator), strict=True))
            ends = self._widened(rule.target, subject, held)
            decision = decide_whatever_is_missing(
                held, ends, rule.number, higher_is_better=rule.at_least, fewest=0 if is_bare else rule.fewest
            )
            if decision.verdict is not Verdict.UNDECIDED and not row["reliable"] and self._is_unbounded(metric):
                decision = Decision(Verdict.UNDECIDED, reason=f"the value rests on few large amounts: {NO_CLAIM}")
            none = "it has no interval" if self.look is None else f"fewer than {FEWEST_UNITS} units have no limits"
            unbounded = none if None in (held["ci_low"], held["ci_high"]) else None
            yield Checked(
                rule.text,
                *subject,
                decision,
                value,
                ci_low=shown[0],
                ci_high=shown[1],
                limit_low=None if is_bare else ends[0],
                limit_high=None if is_bare else ends[1],
                units=units,
                missing=missing,
                is_reliable=bool(row.get("reliable")) or is_bare,
                reason=decision.reason or unbounded,
            )


ENDS = ("ci_low", "ci_high")


def _compared(
    lake: Lake, side: Side, other: Side | None, changes: Sequence[Change], *, force: bool, corrected: bool
) -> tuple[Mapping[tuple[Target, Subject], dict[str, Any]], Sequence[str]]:
    """Compute the paired differences that rules are about; p values are adjusted over all that are tested."""
    if other is None or not changes:
        return {}, ()
    names = sorted({rule.target.metric for rule in changes})
    compared = compare_found(lake, side, other, names, force=force, corrected=corrected)
    tested = {rule.target for rule in changes if rule.margin is None}
    targets = [Target(*row) for row in compared.rows.select("metric", "slice", "slice_value").iter_rows()]
    family = pl.Series([target in tested for target in targets])
    rows = with_holm(compared.rows.with_columns(p=pl.when(family).then("p")))
    of_target = zip(targets, rows.iter_rows(named=True), strict=True)
    forced = [f"compared by force: {reason}" for reason in compared.forced]
    return {(target, (row["model"], row["judge"])): row for target, row in of_target}, forced


def _hold_change(
    rule: Change, compared: Mapping[tuple[Target, Subject], dict[str, Any]], measured: _Measured
) -> Iterator[Checked]:
    """Hold the run's values against the baseline's."""
    subjects = measured.subjects(rule.target)  # also those that the baseline lacks, which pass nothing
    judges = {judge for known, (_, judge) in compared if known == rule.target}
    if not judges <= {judge for _, judge in subjects}:  # the scorers of two tools have one name
        subjects = [(model, judge) for model in measured.models for judge in sorted(judges, key=str)]
    for subject in subjects:
        row = compared.get((rule.target, subject))
        if row is None or row["difference"] is None:
            reason = "nothing to pair it with" if row is None else "one side has no value"
            yield Checked(rule.text, *subject, Decision(Verdict.UNDECIDED), reason=reason)
            continue
        if measured.look is not None:
            row = row | _widened(row, measured.look.anytime)  # other rules about it read the same row
        numbers = {name: row[name] for name in ("difference", "ci_low", "ci_high", "p_holm", "units")}
        decision = _whatever_is_missing(partial(_change, rule, look=measured.look), row)
        if decision.verdict is Verdict.PASS:
            decision = too_few(row["units"], rule.fewest) or decision
        unbounded = None if row["ci_low"] is not None else "its difference has no interval"
        yield Checked(
            rule.text,
            *subject,
            decision,
            row["value_a"],
            row["value_b"],
            **numbers,
            missing=max(row["missing_a"], row["missing_b"]),
            reason=decision.reason or unbounded,
        )


def _change(rule: Change, row: Mapping[str, Any], look: Look | None) -> Decision:
    """Decide about a change as if nothing were missing."""
    if row["mark"] is not None:
        return Decision(Verdict.UNDECIDED, reason=f"{row['mark']}: {NO_CLAIM}")
    if rule.margin is not None:
        return _within(rule, row, rule.margin)
    decision = _significant(rule, row)
    if decision.verdict is not Verdict.PASS or look is None or look.is_last:
        return decision
    return _within(rule, row, 0.0)  # a PASS only where nothing is worse at all: more samples may make it significant


def _whatever_is_missing(decided: Callable[[Mapping[str, Any]], Decision], row: Mapping[str, Any]) -> Decision:
    """Decide about a difference, unless what either side lacks could change that."""
    known, at = decided(row), row["difference"]
    if known.verdict is Verdict.UNDECIDED or (row["bound_low"], row["bound_high"]) == (at, at):
        return known
    cases = {Verdict.UNDECIDED}
    if row["bound_low"] is not None and row["ci_low"] is not None and row["ci_high"] is not None:
        cases = {decided(_moved(row, row[end] - at)).verdict for end in ("bound_low", "bound_high")}
    if cases == {known.verdict}:
        return known
    return Decision(Verdict.UNDECIDED, reason=f"it would {known.verdict.lower()}, but what is missing may change that")


def _moved(row: Mapping[str, Any], by: float) -> dict[str, Any]:
    """Move a difference with its interval, as missing rows may; its p value is then unknown."""
    return dict(row) | {name: row[name] + by for name in ("difference", *ENDS)} | {"p_holm": None}


def _widened(row: Mapping[str, Any], anytime: Anytime) -> dict[str, Any]:
    """Widen the interval of the difference to hold at every look; a p value, which is of one look only, is dropped."""
    low, high = anytime.widened(row["difference"], row["ci_low"], row["ci_high"], row["units"])
    return {"ci_low": low, "ci_high": high, "p_holm": None}


def _significant(rule: Change, row: Mapping[str, Any]) -> Decision:
    """Decide FAIL where the change is for the worse and significant; by the interval where the metric has no test."""
    worse = row["difference"] < 0 if rule.down else row["difference"] > 0
    if row["p_holm"] is not None:
        return Decision(Verdict.FAIL if worse and row["p_holm"] < SIGNIFICANT_BELOW else Verdict.PASS)
    if row["ci_low"] is None or row["ci_high"] is None:
        return Decision(Verdict.UNDECIDED)
    beyond = row["ci_high"] < 0 if rule.down else row["ci_low"] > 0
    return Decision(Verdict.FAIL if beyond else Verdict.PASS)


def _within(rule: Change, row: Mapping[str, Any], margin: float) -> Decision:
    """Decide PASS where the whole interval stays within the margin, FAIL where none of it does."""
    target = -margin if rule.down else margin
    ends = row["difference"], row["ci_low"], row["ci_high"]
    return decide(*ends, row["units"], target, higher_is_better=rule.down)


def _not_passed_by_part(check: Checked, side: Side) -> Checked:
    """Turn a PASS into UNDECIDED where the run is not complete, or a consensus of Dawid and Skene decides."""
    decision = as_judged(of_whole_run(check.decision, side.run["state"]), check.judge)
    return check if decision == check.decision else replace(check, decision=decision, reason=decision.reason)


def _warnings(side: Side) -> list[str]:
    run = side.run
    why = (run["message"] or "").removeprefix("waiting: ")
    state = [] if run["state"] == "completed" else [f"the run {run['run_id']} is {run['state']}: {why}"]
    return [*state, *_mix(run), *side.snapshot["warnings"]]


def _mix(run: Mapping[str, Any]) -> list[str]:
    """Say that a run which took as many samples of each dataset has another mix than the datasets."""
    limit, datasets = json.loads(run["parameters"] or "{}").get("limit"), json.loads(run["dataset_versions"])
    if limit is None or len(datasets) == 1:
        return []
    of = f"the run took up to {limit} samples of each of {len(datasets)} datasets"
    return [f"{of}: values over all samples are of that mix, and --pooled draws in proportion"]
