"""A report: one run's metric snapshot, what its suite wants shown of it, and what follows (ranks, mistakes)."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from evalake.core.hashing import plain
from evalake.metrics.agreement import BY_DAWID_SKENE, PANEL
from evalake.reports.coverage import Coverage
from evalake.reports.ranking import (
    FIXED,
    Comparison,
    Decision,
    Limits,
    Missing,
    Standing,
    Verdict,
    as_judged,
    decide_whatever_is_missing,
    fails_by_chance,
    of_whole_run,
    stand,
)
from evalake.reports.wording import UNKNOWN, count_of, number, visible
from evalake.sdk.figures import (
    AgreementMatrix,
    Answers,
    ByPart,
    Decisions,
    Figure,
    HeatMap,
    Quantity,
    Ranking,
    Statistics,
    Unit,
)
from evalake.sdk.json_in_text import json_object

MISTAKES_SHOWN = 200
"""Mistakes listed per model."""


class Subject(NamedTuple):
    """What is measured: a model, as seen by a judge, a panel, or rules (None)."""

    model: str
    judge: str | None = None

    @property
    def name(self) -> str:
        """The model, and who judged it where somebody did."""
        return self.model if self.judge is None else f"{self.model} · {self.judge}"

    @property
    def brief(self) -> str:
        """The name where there is little room: without leading path parts, and of a panel, how many judges it has."""
        model, judge = (part and part.rsplit("/", 1)[-1] for part in self)
        if self.judge is not None and self.judge.startswith(PANEL):
            by = " (Dawid-Skene)" if self.judge.startswith(BY_DAWID_SKENE) else ""
            judge = f"panel of {self.judge.count('+') + 1}{by}"
        return f"{model}" if judge is None else f"{model} · {judge}"


def why_unreliable(judges: Iterable[str | None]) -> str:
    """Say what the mark of values that are not `reliable` means; `judges` are those of all values."""
    if any(judge is not None and judge.startswith(BY_DAWID_SKENE) for judge in judges):
        return "unreliable: fewer than 30 units, a mean of few large amounts, or few audits of Dawid and Skene"
    return "unreliable: fewer than 30 units, or a mean of few large amounts"


@dataclass(frozen=True, slots=True)
class Value:
    """One metric value; None where unknown. A value of few units, or a mean of few large amounts, is not `reliable`."""

    value: float | None = None
    n: int = 0
    ci_low: float | None = None
    ci_high: float | None = None
    reliable: bool = False
    units: int = 0

    @property
    def doubtful(self) -> bool:
        """Whether there is a value that is not reliable."""
        return self.value is not None and not self.reliable


@dataclass(frozen=True)
class Report:
    """What a report is made of; nothing in it is computed twice.

    run, snapshot  their rows of `runs` and `snapshots`
    metrics        the snapshot's rows of `metric_snapshots`; at least model, judge, slice, slice_value, metric, value,
                   n, ci_low, ci_high, reliable
    figures        what the suite wants shown; its first Ranking orders the models everywhere
    target         the value of the ranking's quantity that passes
    comparisons    judge to every pair of its models, compared in the quantity that ranks; without it no letters
    trivial        what models that answer every sample alike would get in the quantity that ranks, by name
    answers        which columns of `results` say what was right; without it no mistakes are listed
    missing        what the run lacks of each model, and the bounds of the headline metrics that leaves
    limits         of the ranking's quantity by model and judge: the limits that decide
    coverage       what came of the items of each model, judge and dataset
    results        the answers that are listed, with the columns that `answers` shows; a `judge` column only where the
                   suite has judges
    wrong          how many answers of each model could be listed; where it is missing, as many as `results` has
    """

    title: str
    run: Mapping[str, Any]
    snapshot: Mapping[str, Any]
    metrics: pl.DataFrame
    figures: tuple[Figure, ...]
    target: float | None = None
    comparisons: Mapping[str | None, Sequence[Comparison]] = field(default_factory=dict)
    trivial: Mapping[str, float] = field(default_factory=dict)
    answers: Answers | None = None
    missing: Sequence[Missing] = ()
    limits: Mapping[tuple[str, str | None], Limits] = field(default_factory=dict)
    coverage: Sequence[Coverage] = ()
    results: pl.DataFrame | None = None
    wrong: Mapping[Subject, int] = field(default_factory=dict)

    @cached_property
    def shown(self) -> tuple[Figure, ...]:
        """The figures that say something of this run."""
        return tuple(figure for figure in self.figures if self._says_something(figure))

    def _says_something(self, figure: Figure) -> bool:
        match figure:
            case HeatMap(of_several=True):
                return len(self.slice_values(figure.quantity, figure.slice)) > 1
            case ByPart():
                return bool(self.slice_values(figure.quantity, figure.slice))
            case Statistics():
                return any(self.judges(quantity) for quantity in figure.quantities)
            case Decisions():
                return bool(self.slice_values(figure.statistics[0], figure.slice))
        return True

    @cached_property
    def ranking(self) -> Ranking | None:
        """The table that orders the models."""
        return next((figure for figure in self.figures if isinstance(figure, Ranking)), None)

    @cached_property
    def standings(self) -> dict[Subject, Standing]:
        """Every model's place, best first; models of different judges are ranked apart."""
        measured = self.metrics.select("model", "judge").unique(maintain_order=True)
        subjects = [Subject(*row) for row in measured.iter_rows()]
        if self.ranking is None:
            return {subject: Standing(subject.model, None, None, None) for subject in subjects}
        quantity = self.ranking.quantity
        placed = {}
        for judge in dict.fromkeys(subject.judge for subject in subjects):
            values = {s.model: self.value(s, quantity).value for s in subjects if s.judge == judge}
            compared, upwards = self.comparisons.get(judge, ()), quantity.higher_is_better
            bounds = {model: each.bounds for (model, by), each in self.limits.items() if by == judge and each.bounds}
            worst = {model: ends[0 if upwards else 1] for model, ends in bounds.items()}
            for standing in stand(values, compared, higher_is_better=upwards, worst=worst):
                placed[Subject(standing.model, judge)] = standing
        return placed

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Everything measured, best first."""
        return tuple(self.standings)

    def value(self, subject: Subject, quantity: Quantity, slice_: str = "all", slice_value: str = "") -> Value:
        """Look up the value of a metric; unknown where the snapshot has none."""
        return self._values.get((subject, quantity.metric, slice_, slice_value), Value())

    def slice_values(self, quantity: Quantity, slice_: str) -> list[str]:
        """List the values of a slice for which a metric was measured, in order."""
        rows = self.metrics.filter(pl.col("metric") == quantity.metric, pl.col("slice") == slice_)
        return rows["slice_value"].unique().sort().to_list()

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order of `subjects`."""
        return tuple(dict.fromkeys(subject.model for subject in self.subjects))

    @cached_property
    def only_judge(self) -> str | None:
        """The judge of everything measured; None where there are several, or rules."""
        judges = {subject.judge for subject in self.subjects}
        return next(iter(judges)) if len(judges) == 1 else None

    def judges(self, quantity: Quantity) -> list[str | None]:
        """List the judges by whom the quantity is known of some model, in order of name."""
        known = {s.judge for s in self.subjects if self.value(s, quantity).value is not None}
        return sorted(known, key=lambda judge: judge or "")

    def agreement(self, figure: AgreementMatrix) -> dict[Subject, dict[tuple[str, str], Value]]:
        """Look up each subject's values of the quantity for the pairs of judges that it was measured for."""
        pairs = self.slice_values(figure.quantity, figure.slice)
        values: dict[Subject, dict[tuple[str, str], Value]] = {}
        for subject in self.subjects:
            for pair in pairs:
                key = (subject, figure.quantity.metric, figure.slice, pair)
                if key in self._values:
                    first, _, second = pair.partition("~")
                    values.setdefault(subject, {})[first, second] = self._values[key]
        return values

    def pooled(self, quantity: Quantity, slice_: str, pair: str) -> Value:
        """Look up a quantity of a pair of judges over all models; it stands with each model that they judged."""
        values = (self.value(subject, quantity, slice_, pair) for subject in self.subjects)
        return next((value for value in values if value.n), Value())

    def decision(self, subject: Subject) -> Decision | None:
        """Decide by its interval whether a model reaches the target; None where there is no target or no value."""
        if self.target is None or self.ranking is None:
            return None
        known, upwards = self.value(subject, self.ranking.quantity), self.ranking.quantity.higher_is_better
        if known.value is None:
            return None
        shown = known.ci_low, known.ci_high
        limits = self.limits.get(subject, Limits(shown, shown))
        row = {"value": known.value, "units": known.units, "trials": limits.trials, "alike": limits.alike}
        row |= dict(zip(("ci_low", "ci_high"), limits.exact, strict=True))
        decision = decide_whatever_is_missing(row, limits.whatever, self.target, higher_is_better=upwards)
        return as_judged(of_whole_run(decision, self.run["state"]), subject.judge)

    def lacking(self, subject: Subject) -> Missing | None:
        """Find what the run lacks of a model, as the judge saw it; None where nothing."""
        return next((each for each in self.missing if (each.model, each.judge) == subject), None)

    def mistakes(self) -> Iterator[tuple[Subject, int, pl.DataFrame]]:
        """Yield how many wrong answers each model has, and the first, in the order of the ranking; none without any."""
        if self.answers is None or self.results is None:
            return
        judge = pl.col("judge") if "judge" in self.results.columns else pl.lit(None, pl.String)
        wrong = self.results.filter(self.answers.listed).with_columns(judge=judge)
        by_subject = {Subject(*key): part for key, part in wrong.group_by("model", "judge", maintain_order=True)}
        for subject in self.subjects:
            if subject in by_subject:
                part = by_subject[subject].sort(self.answers.sample)
                yield subject, self.wrong.get(subject, part.height), part.head(MISTAKES_SHOWN)

    @cached_property
    def _values(self) -> dict[tuple[Subject, str, str, str], Value]:
        return {
            (Subject(row["model"], row["judge"]), row["metric"], row["slice"], row["slice_value"]): Value(
                plain(row["value"]),
                row["n"],
                plain(row["ci_low"]),
                plain(row["ci_high"]),
                row["reliable"],
                row["n"] if row.get("units") is None else row["units"],  # snapshots of before have no units
            )
            for row in self.metrics.iter_rows(named=True)
        }


# What a report says about its run: in a few lines, and in full.


_ORIGINS = {"run": "models were called", "import": "recorded results were imported"}


def headline(report: Report) -> list[str]:
    """List run and snapshot, counts, cost, how many models reach the target, and what trivial ones get: a line each."""
    run = report.run
    lines = [
        f"run {_shown(run['run_id'])}, {_shown(run['state'])} · snapshot {_shown(report.snapshot['snapshot_id'])[:12]}",
        f"{count_of(run['samples'], 'sample')} · {count_of(len(run['models']), 'model')}"
        + (f" · judged by {_shown(report.only_judge)}" if report.only_judge else ""),
        f"calls: {_calls(run)} · cost {_paid(run)}",
    ]
    return [*lines, *(line for line in (target_line(report), chance_line(report), trivial_line(report)) if line)]


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
    open_ = f"; {undecided} undecided" if undecided else ""
    if any(decision and decision.more_samples for decision in decisions):
        open_ += f" (+: so many {FIXED})"
    reached = f"{verdicts.count(Verdict.PASS)} of {len(verdicts)}"
    return f"{reached} reach the target of {aim} {quantity.label}{open_}{unknown}"


def chance_line(report: Report) -> str | None:
    """Write how many of the models would miss the target by chance alone; None where fewer than two are held to it."""
    held = sum(report.decision(subject) is not None for subject in report.subjects)
    return f"a model exactly at the target {fails_by_chance(held)}" if held > 1 else None


def warnings(report: Report) -> list[str]:
    """List what a reader of the numbers must know first."""
    run = report.run
    own = [_shown(run["message"])] if run.get("message") else []
    if run["rows_quarantined"] and "quarantine" not in (run.get("message") or ""):
        own.append(f"{count_of(run['rows_quarantined'], 'row')} broke the contract: in quarantine, not in the numbers.")
    remarks = (json_object(run.get("parameters") or "") or {}).get("remarks", ())  # of an import, on its files
    return [*own, *(_shown(each) for each in (*remarks, *report.snapshot["warnings"]))]


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
