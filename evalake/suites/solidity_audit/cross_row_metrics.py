"""Metrics across rows: agreement of judges, replicates and people, how judges err, and how firm the ranking is."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, get_args

import numpy as np
import polars as pl

from evalake.metrics import agreement
from evalake.metrics.agreement import BY_DAWID_SKENE, PANEL
from evalake.metrics.compute import METRIC_ROWS, Metric, measure, metric_row, values
from evalake.metrics.estimators import Mean, Rate
from evalake.models.cost import BASELINE_PREFIX
from evalake.suites.solidity_audit import truth
from evalake.suites.solidity_audit.consensus import NUMBERED, has_converged, merge
from evalake.suites.solidity_audit.metrics import sui
from evalake.suites.solidity_audit.panels import dawid_skene_panels, judge_bias, judge_errors, panel_name
from evalake.suites.solidity_audit.people import judge_against_people
from evalake.suites.solidity_audit.sources.round_files import RULES

ANSWERS = (True, False)
NOMINAL: Mapping[str, tuple[pl.Expr, Sequence[object]]] = {
    "target_found": (pl.col("target_found"), ANSWERS),
    "verdict": (pl.col("said_vulnerable"), ANSWERS),
    "type_match": (pl.col("type_match"), get_args(truth.TypeMatch)),
    "location": (pl.col("location_function_hit"), ANSWERS),
    "bonus": (pl.col("bonus_valid_findings") > 0, ANSWERS),
}
"""Decisions that are one of several words; metric names without a decision are about `target_found`."""
GRADED = ("confidence", *truth.SCORES)
DECIDED: Mapping[str, pl.Expr] = {name: told for name, (told, _) in NOMINAL.items()} | {g: pl.col(g) for g in GRADED}
AUDIT = ("sample_hash", "prompt_type", "replicate", "cluster")
POOLED = "judge_pair_pooled"
ALL_ANSWERED = "target_found_by_all"
"""Begins the columns of the judges' words on target found, where all of them answered."""
BY_RULES = f"^({BASELINE_PREFIX}|{RULES}$)"
"""Names of judges that are rules: those of this project, and of imported rounds."""
MOST_PAIRED = 12
"""Judges of a panel whose pairs are measured; 38 judges have 703 pairs, and their metrics fill the memory."""


def cross_row_metrics(frame: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
    """Compute all cross-row metrics of the result rows, in the columns of `evalake.metrics.compute.measure`."""
    audits = frame.filter(pl.col("prompt_type") != truth.KNOWLEDGE)
    judge = pl.col("judge")
    together = audits.filter(judge.str.starts_with(PANEL) | truth.in_panel(options, judge))
    return pl.concat(
        [
            judge_agreement(together),
            judge_bias(together),
            judge_errors(together),
            replicate_agreement(audits),
            rank_stability(audits, options),
            judge_against_people(audits),
            divergence(audits),
            robustness(frame),
        ]
    )


def judge_agreement(frame: pl.DataFrame) -> pl.DataFrame:
    """Measure the agreement of each panel's judges: of all on target found and scores, of pairs on every decision.

    The slice `judge_pair` covers one model's audits; `judge_pair_pooled` covers those of all models that the panel
    judged, and is repeated for each of them. Audits that a model did not give are left out: there was nothing to judge.
    """
    panels = frame.filter(pl.col("judge").str.starts_with(PANEL)).select("model", "judge").unique().sort("model")
    given = frame.filter(pl.col("subject_error").is_null(), ~pl.col("judge").str.starts_with(PANEL))
    models_of: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for model, panel in panels.iter_rows():
        judges = tuple(sorted(given.filter(pl.col("model") == model)["judge"].unique()))
        if panel not in (panel_name(judges, aggregated) for aggregated in truth.WAYS):
            continue  # a panel of judges that this run does not have
        models_of.setdefault((panel, judges), []).append(model)
    parts = []
    for (panel, judges), models in models_of.items():
        together = given.filter(pl.col("model").is_in(panels.filter(judge=panel)["model"].implode()))
        wide, classes = _wide(together, "judge", judges, DECIDED), _classes(together, judges)
        one_of_them, all_as_one = pl.col("model").is_in(models), pl.lit("").alias("model")
        own = _of_judges(wide.filter(one_of_them), classes.filter(one_of_them), judges, "judge_pair")
        pooled = _of_judges(wide.with_columns(all_as_one), classes.with_columns(all_as_one), judges, POOLED)
        repeated = pl.DataFrame({"model": models}).join(pooled.drop("model"), how="cross")
        parts += [part.with_columns(judge=pl.lit(panel)) for part in (own, repeated)]
    return _stacked(parts).sort("model", maintain_order=True)


def _of_judges(wide: pl.DataFrame, classes: pl.DataFrame, judges: Sequence[str], slice_: str) -> pl.DataFrame:
    """Measure the agreement of a panel's pairs of judges in a slice, and, for each model, that of all its judges."""
    targets = {judge: pl.col(f"target_found {judge}") for judge in judges}
    decided = {} if slice_ == POOLED else {("all", "", m.name): m for m in _of_all(list(targets.values()), judges)}
    classed: dict[tuple[str, str, str], Metric] = {}
    paired = judges if len(judges) <= MOST_PAIRED else ()
    wide = wide.with_columns(
        pl.when(_all_answered(list(targets.values()))).then(told).alias(f"{ALL_ANSWERED} {judge}")
        for judge, told in targets.items()
    )
    for a, b in combinations(paired, 2):
        decided |= {(slice_, f"{a}~{b}", metric.name): metric for metric in _of_pair(a, b)}
        classed |= {(slice_, f"{a}~{b}", metric.name): metric for metric in _of_findings(a, b)}
    return pl.concat([_measured(wide, decided), _measured(classes, classed)])


def divergence(frame: pl.DataFrame) -> pl.DataFrame:
    """Measure where each judge by rules differs from the majority of models as judges, on the same audits.

    diverges_from_models_rate      audits on which they differ
    rules_alone_found_rate         targets that only the rules say were found
    models_alone_found_rate        targets that only the models say were found
    """
    singles = frame.filter(~pl.col("judge").str.starts_with(PANEL)).drop_nulls("target_found")
    by_rule = pl.col("judge").str.contains(BY_RULES)
    of_models = singles.filter(~by_rule).group_by("model", *AUDIT).agg(models=pl.col("target_found").mean())
    both = singles.filter(by_rule).join(of_models.filter(pl.col("models") != 0.5), on=["model", *AUDIT])
    if both.is_empty():
        return pl.DataFrame(schema=METRIC_ROWS)
    rules, models = pl.col("target_found"), pl.col("models") > 0.5
    differences = {
        "diverges_from_models_rate": rules != models,
        "rules_alone_found_rate": rules & ~models,
        "models_alone_found_rate": models & ~rules,
    }
    slices = ("all", "vulnerability_type", "transformation")
    metrics = [Metric(name, Rate(differs), slices=slices) for name, differs in differences.items()]
    return measure(both, metrics, cluster="cluster").select(METRIC_ROWS.keys())


def replicate_agreement(frame: pl.DataFrame) -> pl.DataFrame:
    """Measure each judge's test-retest agreement on target found, by pair of replicates (slice `replicate_pair`)."""
    parts = []
    for (_, judge), rows in frame.sort("model", "judge").group_by("model", "judge", maintain_order=True):
        replicates = sorted(rows["replicate"].unique())
        if len(replicates) < 2:
            continue
        wide = _wide(rows, "replicate", replicates, {"target_found": DECIDED["target_found"]})
        metrics: dict[tuple[str, str, str], Metric] = {}
        for a, b in combinations(replicates, 2):
            first, second = pl.col(f"target_found {a}"), pl.col(f"target_found {b}")
            for name, estimator in _nominal(first, second):
                metrics["replicate_pair", f"{a}~{b}", name] = Metric(f"{name} {a}~{b}", estimator)
        parts.append(_measured(wide, metrics).with_columns(pl.lit(judge, pl.String).alias("judge")))
    return _stacked(parts)


def rank_stability(frame: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
    """Compute each judge's lowest rank correlation of the models' SUI between two weight sets; n counts its models."""
    sets = truth.sui_weight_sets(options)
    unstated = truth.calibration_unstated(options)
    declared = [Metric(name, sui(weights, unstated)) for name, weights in sets.items()]
    judged = frame.drop_nulls("detection_correct").select("model", "judge").unique()
    indices = values(frame, declared, ("model", "judge"))
    indices = indices.join(judged, on=["model", "judge"], how="semi", nulls_equal=True, maintain_order="left")
    rows = []
    for (judge,), of_judge in indices.group_by("judge", maintain_order=True):
        wide = of_judge.drop_nulls(list(sets)).sort("model")
        models = wide.height
        ranks = {name: wide[name].round(12).rank().to_list() for name in sets}
        varied = models > 1 and all(len({*ranked}) > 1 for ranked in ranks.values())
        lowest = min(_correlation(a, b) for a, b in combinations(ranks.values(), 2)) if varied else None
        counts = {"n": models, "units": models}
        rows += [metric_row(each, judge, "sui_rank_stability", **counts, value=lowest) for each in wide["model"]]
    return pl.DataFrame(rows, schema=METRIC_ROWS)


def _correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Compute Pearson's correlation; of ranks it is Spearman's, for which SciPy takes a second to be imported."""
    return float(np.corrcoef(np.column_stack((a, b)), rowvar=False)[1, 0])


def _of_all(targets: Sequence[pl.Expr], judges: Sequence[str]) -> list[Metric]:
    counts = agreement.votes(targets, ANSWERS)
    unanimous = pl.any_horizontal(*[count == len(judges) for count in counts])
    scores = {score: [pl.col(f"{score} {judge}") for judge in judges] for score in truth.SCORES}
    return [
        Metric("fleiss_kappa", agreement.fleiss_kappa(counts, len(judges))),
        Metric("krippendorff_alpha", agreement.krippendorff_alpha(counts)),
        Metric("unanimous_rate", Rate(unanimous, _all_answered(targets))),
        *(Metric(f"icc_2_1_{score}", agreement.icc_2_1(given)) for score, given in scores.items()),
    ]


def _of_pair(a: str, b: str) -> list[Metric]:
    """Declare two judges' agreement metrics; on target found, only for samples that all the panel's judges answered."""
    first, second = (pl.col(f"{ALL_ANSWERED} {judge}") for judge in (a, b))
    given = {score: (pl.col(f"{score} {a}"), pl.col(f"{score} {b}")) for score in GRADED}
    others = {name: words for name, (_, words) in NOMINAL.items() if name != "target_found"}
    declared = [
        *_nominal(first, second),
        *(
            (f"{name}_{decision}", estimator)
            for decision, words in others.items()
            for name, estimator in _nominal(pl.col(f"{decision} {a}"), pl.col(f"{decision} {b}"), words)
        ),
        *((f"icc_2_1_{score}", agreement.icc_2_1(pair)) for score, pair in given.items()),
        *((f"pearson_{score}", agreement.pearson(*pair)) for score, pair in given.items()),
    ]
    return [Metric(f"{name} {a}~{b}", estimator) for name, estimator in declared]


def _of_findings(a: str, b: str) -> list[Metric]:
    """Declare the agreement metrics of two judges on the class of the findings that both saw."""
    declared = _nominal(pl.col(f"class {a}"), pl.col(f"class {b}"), truth.CLASSIFICATIONS)
    return [Metric(f"{name}_finding_class {a}~{b}", estimator) for name, estimator in declared]


def _classes(rows: pl.DataFrame, judges: Sequence[str]) -> pl.DataFrame:
    """Build one row per finding, merged as for a panel, with each judge's class; null where a judge did not see it."""
    index = ("model", *AUDIT)
    given = rows.drop_nulls("findings") if "findings" in rows.columns else rows.clear()
    merged = []
    for (_, _, prompt_type, *_), of_audit in given.group_by(index, maintain_order=True):
        audit = of_audit.select(index).row(0, named=True)
        by_judge = of_audit.select("judge", "findings").iter_rows()
        findings = [{**finding, "judge": judge} for judge, stated in by_judge for finding in stated]
        for finding in merge(findings, numbered=prompt_type in NUMBERED):
            merged.append(audit | {f"class {judge}": kind for judge, kind in finding.classes.items()})
    known = {name: rows.schema[name] for name in index}
    return pl.DataFrame(merged, schema=known | {f"class {judge}": pl.String() for judge in judges})


def _nominal(first: pl.Expr, second: pl.Expr, words: Sequence[object] = ANSWERS) -> list[tuple[str, Any]]:
    return [
        ("cohen_kappa", agreement.cohen_kappa(first, second, words)),
        ("gwet_ac1", agreement.gwet_ac1(first, second, words)),
        ("percent_agreement", agreement.percent_agreement(first, second)),
    ]


def _all_answered(answers: Sequence[pl.Expr]) -> pl.Expr:
    return pl.all_horizontal(*[answer.is_not_null() for answer in answers])


def _wide(rows: pl.DataFrame, by: str, values: Sequence[Any], columns: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Build one row per audit, with a column `NAME VALUE` for each value of `by`; null where there is no answer."""
    index = [name for name in AUDIT if name != by]
    answers = [
        decision.filter(pl.col(by) == value).first().alias(f"{name} {value}")
        for name, decision in columns.items()
        for value in values
    ]
    return rows.group_by("model", *index, maintain_order=True).agg(*answers)


def _measured(wide: pl.DataFrame, metrics: Mapping[tuple[str, str, str], Metric]) -> pl.DataFrame:
    """Compute the metrics of each model, each renamed to its slice, slice value and name."""
    columns = [name for name in METRIC_ROWS if name != "judge"]
    if not metrics:
        return pl.DataFrame(schema={name: METRIC_ROWS[name] for name in columns})
    measured = measure(wide, list(metrics.values()), groups=("model",), cluster="cluster")
    keys = pl.DataFrame(
        [
            {"metric": metric.name, "slice": name, "slice_value": value, "metric name": metric.name.split(" ")[0]}
            for (name, value, _), metric in metrics.items()
        ]
    )
    named = measured.drop("slice", "slice_value").join(keys, on="metric", maintain_order="left")
    return named.drop("metric").rename({"metric name": "metric"}).select(columns)


def _stacked(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=METRIC_ROWS), *(part.select(METRIC_ROWS.keys()) for part in parts)])


# What a reader of the metrics must know: judges that judge themselves, panels of one, judgements that failed.


def warnings(frame: pl.DataFrame) -> Sequence[str]:
    """Write one sentence for each thing that makes the numbers less reliable than they look."""
    audits = frame.filter(pl.col("prompt_type") != truth.KNOWLEDGE)
    rows = audits.filter(~pl.col("judge").str.starts_with(PANEL))
    return [*_of_single_judges(rows), *_of_panels(audits), *_unstated(rows), *base_warnings(frame)]


def _of_single_judges(rows: pl.DataFrame) -> Iterator[str]:
    for model in rows.filter(pl.col("model") == pl.col("judge"))["model"].unique().sort():
        yield f"self-judging: {model} judges its own audits, which favours it"
    if len(judges := rows["judge"].unique()) == 1:
        only = f"all judgements are {judges[0]}'s, and no agreement can be measured (--judges a,b)"
        yield f"a panel of one judge: {only}"
    given = rows.filter(pl.col("subject_error").is_null())
    for model, judge, rate in _rates(given, pl.col("judge_error").is_not_null(), above=0.05):
        yield f"{model} by {judge}: {rate:.1%} of the judgements failed; their audits are in no rate"
    for judge, taken, judged in _counted(given, pl.col("repaired")):
        yield f"{judge}: {taken:,} of {judged:,} judgements took a second attempt, for the first could not be used"
    for judge, flagged, judged in _counted(given, pl.col("contradictions").is_not_null()):
        yield (
            f"{judge}: {flagged:,} of {judged:,} imported judgements contradict themselves (column contradictions); "
            "they count as they stand"
        )


def _rates(rows: pl.DataFrame, flag: pl.Expr, above: float) -> Iterator[tuple[str, str, float]]:
    """Yield model, judge, and the rate of a flag, where that is higher."""
    rates = rows.group_by("model", "judge").agg(rate=flag.mean()).filter(pl.col("rate") > above)
    return rates.sort("model", "judge").iter_rows()


def _counted(given: pl.DataFrame, flag: pl.Expr) -> list[tuple[str, int, int]]:
    """Count each judge's judgements that have the flag, and all of them; judges without a flagged one are left out."""
    of_judge = given.drop_nulls("judgement_hash").group_by("judge").agg(flag.sum(), judged=pl.len())
    return [(judge, count, judged) for judge, count, judged in of_judge.sort("judge").iter_rows() if count]


def _of_panels(frame: pl.DataFrame) -> Iterator[str]:
    for model, panel, rate in _rates(frame, pl.col("panel_undecided"), above=0):
        yield f"{model} by {panel}: undecided on {rate:.1%} of the audits, which are in no rate"
    of_two = frame.filter(pl.col("panel_judges") == 2, pl.col("judge").str.starts_with(BY_DAWID_SKENE))
    for panel in of_two["judge"].unique().sort():
        yield f"{panel}: the words of two judges do not tell which of them errs; ask a third, or take the majority"
    for size in frame.filter(pl.col("panel_judges") > MOST_PAIRED)["panel_judges"].unique().sort():
        yield f"a panel of {size} judges: agreement is measured among all of them; of pairs, up to {MOST_PAIRED} judges"
    for panel, audits in dawid_skene_panels(frame):
        if len(audits) < agreement.FEWEST_ITEMS:
            yield (
                f"{panel}: {len(audits)} audits are too few for Dawid and Skene, which need {agreement.FEWEST_ITEMS}: "
                "right and wrong may be exchanged (in 16 to 18 % at 30 audits); take the majority"
            )
        if not has_converged(audits):
            yield f"{panel}: Dawid and Skene have not converged after {agreement.ROUNDS:,} rounds; take the majority"


def _unstated(rows: pl.DataFrame) -> Iterator[str]:
    judged = rows.filter(pl.col("detection_correct").is_not_null())
    without = judged.group_by("model").agg(known=pl.col("confidence").count()).filter(pl.col("known") == 0)
    for model in without["model"].sort():
        instead = "calibration in its sui is not measured but set by sui_calibration_unstated"
        yield f"{model} stated no confidence: {instead}"


# What a transformation of a contract costs a model: pairs of a base and what was made of it, by model and judge.
# A base is the sample without a transformation. Where a run lacks it, its least changed variant stands in.


BASES = ("original", "minimal_sanitized", "sanitized", "no_comments")
"""What can stand for a base, the least changed first."""
DISGUISES = "chameleon|shapeshifter|renamed"
"""Transformations that hide where a contract is from, and leave what it does."""
PAIR = ("model", "judge", "prompt_type", "replicate", "base")
_COMPARED = ("target_found", "detection_correct", "said_vulnerable", "is_vulnerable")
_SLICES = ("all", "transformation")

_same_truth = pl.col("is_vulnerable") == pl.col("is_vulnerable base")
_fixed = pl.col("is_vulnerable base") & ~pl.col("is_vulnerable")
_told = pl.col("said_vulnerable").is_not_null() & pl.col("said_vulnerable base").is_not_null()
_disguised = pl.col("transformation").str.contains(DISGUISES)


def _lost(name: str, where: pl.Expr) -> Mean:
    before, after = (pl.col(column).cast(pl.Float64) for column in (f"{name} base", name))
    return Mean(pl.when(where).then(before - after), low=-1, high=1)


METRICS = (
    Metric("robustness_drop_target_detection_rate", _lost("target_found", _same_truth), slices=_SLICES),
    Metric("robustness_drop_accuracy", _lost("detection_correct", pl.lit(True)), slices=_SLICES),
    Metric(
        "consistency_rate",
        Rate(pl.col("said_vulnerable") == pl.col("said_vulnerable base"), _same_truth & _told),
        slices=_SLICES,
    ),
    Metric(
        "fix_recognised_rate",
        Rate(~pl.col("said_vulnerable"), _fixed & pl.col("said_vulnerable base") & _told),
        slices=_SLICES,
    ),
    Metric("memorisation_gap", _lost("target_found", _same_truth & _disguised), slices=("all", "contaminated")),
)
"""Base minus variant, the same verdict on both, fixes that are noticed, and targets lost by a disguise alone."""


def robustness(frame: pl.DataFrame) -> pl.DataFrame:
    """Measure `METRICS` over pairs of base and variant, a base being one unit; no rows without a pair."""
    paired = pairs(frame)
    if paired.is_empty():
        return pl.DataFrame(schema=METRIC_ROWS)
    return measure(paired, METRICS, cluster="cluster").select(METRIC_ROWS.keys())


def pairs(frame: pl.DataFrame) -> pl.DataFrame:
    """Join each variant's answer with the one about its base, and with whether the model knew the base."""
    probes = frame.filter(pl.col("prompt_type") == truth.KNOWLEDGE)
    audits = frame.filter(pl.col("prompt_type") != truth.KNOWLEDGE, pl.col("base").is_not_null()).with_columns(
        rank=pl.col("transformation")
        .fill_null(BASES[0])
        .replace_strict({name: rank for rank, name in enumerate(BASES)}, default=None, return_dtype=pl.Int64)
    )
    bases = audits.drop_nulls("rank").sort("rank", "sample_hash").unique(PAIR, keep="first", maintain_order=True)
    compared = bases.select(
        *PAIR, pl.col("rank").alias("rank base"), *(pl.col(c).alias(f"{c} base") for c in _COMPARED)
    )
    joined = audits.join(compared, on=PAIR, nulls_equal=True, maintain_order="left")
    known = probes.group_by("model", "base").agg(knew=pl.col("contaminated").any(ignore_nulls=False))
    changed = joined.filter(pl.col("rank").is_null() | (pl.col("rank") != pl.col("rank base")))
    with_probe = changed.join(known, on=("model", "base"), how="left", maintain_order="left")
    word = pl.when("knew").then(pl.lit("known")).when(~pl.col("knew")).then(pl.lit("not known"))
    return with_probe.with_columns(contaminated=word)


def base_warnings(frame: pl.DataFrame) -> Iterator[str]:
    """Say which variant stands in for bases that the run lacks."""
    audits = frame.filter(pl.col("transformation").is_not_null(), pl.col("prompt_type") != truth.KNOWLEDGE)
    by_base = audits.group_by("base").agg(pl.col("transformation").unique())
    stand_in = dict.fromkeys(BASES[1:], 0)
    for made in by_base["transformation"].to_list():
        first = next((name for name in BASES if name in made), None)
        if first in stand_in and len(made) > 1:
            stand_in[first] += 1
    for name, count in stand_in.items():
        if count:
            yield f"robustness: {count} bases have no original in this run, and are compared with {name}"
