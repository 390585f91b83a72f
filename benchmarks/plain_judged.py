"""A plain Python loop over the formulas of solidity_audit: what anybody with rows as dictionaries would write.

Every row adds to a dictionary of sums for each slice that it is in, and every metric follows from the sums. Nothing is
vectorised, and nothing is made slow on purpose: the rows of a slice are read once, and what the bootstrap draws are
clusters that were added up before.
"""

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from scipy.special import stdtrit

from evalake.suites.solidity_audit.metrics import SLICES
from evalake.suites.solidity_audit.truth import DEFAULTS, INVALID_COSTS, SEVERITY_WEIGHTS, count_column

Row = Mapping[str, Any]
Sums = dict[Any, float]
Group = tuple[str, str, str, str]  # model, judge, slice, slice value
WEIGHTS = DEFAULTS["sui_weights"]
SCORES = ("rcir", "ava", "fsv")

RATES: Mapping[str, tuple[str, str]] = {
    "accuracy": ("correct", "judged"),
    "precision": ("tp", "called"),
    "recall": ("tp", "vulnerable"),
    "fpr": ("fp", "safe"),
    "fnr": ("fn", "vulnerable"),
    "target_detection_rate": ("found", "vulnerable"),
    "lucky_guess_rate": ("lucky", "tp"),
    "bonus_discovery_rate": ("bonus", "judged"),
    "extra_valid_rate": ("extra", "judged"),
    "finding_precision": ("valid", "findings"),
    "invalid_rate": ("invalid", "findings"),
    "hallucination_rate": ("hallucinated", "findings"),
    "exact_match_rate": ("exact", "found"),
    "semantic_match_rate": ("semantic", "found"),
    "partial_match_rate": ("partial", "found"),
    "overconfidence_rate": ("wrong above", "above"),
    "underconfidence_rate": ("right below", "below"),
    "location_function_rate": ("function", "functions"),
    "location_line_hit_rate": ("line", "lines"),
    "judge_error_rate": ("failed", "rows"),
}
MEANS: tuple[str, ...] = (
    *("over_flagging_score", "avg_findings_per_sample", "mean_rcir", "mean_ava", "mean_fsv", "mean_confidence"),
    *("brier_score", "target_credit", "invalid_cost", "location_line_iou"),
)


def add_up(row: Row, sums: Sums) -> None:
    """Add what the row contributes to every metric."""
    sums["rows"] += 1
    if row["judge_error"] is not None:
        sums["failed"] += 1
        return
    sums["judged"] += 1
    correct, vulnerable, found = row["detection_correct"], row["is_vulnerable"], row["target_found"]
    sums["correct"] += correct
    said = correct == vulnerable
    sums["vulnerable" if vulnerable else "safe"] += 1
    sums["called"] += said
    sums[("tp" if said else "fn") if vulnerable else ("fp" if said else "tn")] += 1
    sums["lucky"] += row["lucky_guess"]
    for name in ("total", "valid", "invalid", "hallucinated"):
        sums["findings" if name == "total" else name] += row[f"{name}_findings"]
    sums["bonus"] += row["bonus_valid_findings"] > 0
    sums["extra"] += row["valid_findings"] > bool(found)
    _add_value(sums, "over_flagging_score", row["invalid_findings"])
    _add_value(sums, "avg_findings_per_sample", row["total_findings"])
    _add_value(sums, "target_credit", row["target_credit"])
    _add_value(sums, "invalid_cost", sum(row[count_column(name)] * cost for name, cost in INVALID_COSTS.items()))
    sums["credited"] += row["target_match_findings"] + 0.5 * (
        row["partial_match_findings"] + row["bonus_valid_findings"]
    )
    if vulnerable and row["severity"] is not None:
        weight = SEVERITY_WEIGHTS[row["severity"]]
        sums["severity"] += weight
        sums["severity found"] += weight * found
    if vulnerable and found:
        sums["found"] += 1
        sums[row["type_match"]] += 1
        sums["semantic"] += row["type_match"] == "exact"
        for name in SCORES:
            _add_value(sums, f"mean_{name}", row[name])
        sums["functions"] += 1
        sums["function"] += row["location_function_hit"]
        sums["lines"] += 1
        sums["line"] += row["location_line_hit"]
        _add_value(sums, "location_line_iou", row["location_line_iou"])
    confidence = row["confidence"]
    if confidence is not None:
        _add_value(sums, "mean_confidence", confidence)
        _add_value(sums, "brier_score", (confidence - correct) ** 2)
        above, below = confidence > 0.8, confidence < 0.5
        sums["above"] += above
        sums["wrong above"] += above and not correct
        sums["below"] += below
        sums["right below"] += below and correct
        tenth = max(0, math.ceil(confidence * 10 - 1e-12) - 1)
        sums["in bin", tenth] += 1
        sums["confidence in bin", tenth] += confidence
        sums["correct in bin", tenth] += correct
        sums["at", confidence] += 1
        sums["correct at", confidence] += correct


def _add_value(sums: Sums, name: str, value: float | None) -> None:
    if value is not None:
        sums["n", name] += 1
        sums[name] += value
        sums["squared", name] += value * value


def _over(a: float, b: float) -> float | None:
    return a / b if b else None


def _reasoning(s: Sums) -> float | None:
    if s["vulnerable"] and not s["found"]:
        return 0.0
    means = [s[f"mean_{name}"] / s["n", f"mean_{name}"] for name in SCORES if s["n", f"mean_{name}"]]
    return sum(means) / len(means) if means else None


def _gaps(s: Sums) -> tuple[float, float] | tuple[None, None]:
    n = sum(s["in bin", tenth] for tenth in range(10))
    if not n:
        return None, None
    gaps = [abs(s["correct in bin", b] - s["confidence in bin", b]) for b in range(10)]
    return sum(gaps) / n, max(gap / s["in bin", b] for b, gap in enumerate(gaps) if s["in bin", b])


def adaptive_bins(s: Sums) -> dict[float, int]:
    """Find the bin of equal mass of each stated confidence; equal confidences are never split."""
    stated = sorted(key[1] for key in s if isinstance(key, tuple) and key[0] == "at")
    n, before, bins = sum(s["at", confidence] for confidence in stated), 0.0, {}
    for confidence in stated:
        bins[confidence] = int(before * 10 // n)
        before += s["at", confidence]
    return bins


def composites(s: Sums, bins: Mapping[float, int]) -> dict[str, float | None]:
    """Compute the metrics whose intervals come from the bootstrap's draws."""
    f2 = _over(5 * s["tp"], 5 * s["tp"] + s["fp"] + 4 * s["fn"])
    found, precise = _over(s["found"], s["vulnerable"]), _over(s["findings"] - s["invalid"], s["findings"])
    reasoning, (ece, mce) = _reasoning(s), _gaps(s)
    of_bin: dict[int, float] = defaultdict(float)
    for confidence, number in bins.items():
        of_bin[number] += s["correct at", confidence] - confidence * s["at", confidence]
    confident = sum(s["at", confidence] for confidence in bins)
    understood = None if None in (found, reasoning, precise) else found * reasoning * precise  # type: ignore[operator]
    parts = (f2, found, _over(s["valid"], s["findings"]), reasoning, 0.5 if ece is None else 1 - ece)
    weighed = [(weight, part) for weight, part in zip(WEIGHTS.values(), parts, strict=True) if part is not None]
    return {
        "f1": _over(2 * s["tp"], 2 * s["tp"] + s["fp"] + s["fn"]),
        "f2": f2,
        "ece": ece,
        "mce": mce,
        "ece_adaptive": _over(sum(map(abs, of_bin.values())), confident),
        **{f"std_{name}": _deviation(s, f"mean_{name}", 0) for name in SCORES},
        "sui": sum(w * p for w, p in weighed) / sum(w for w, _ in weighed) if s["judged"] and weighed else None,
        "true_understanding_score": understood,
        "true_understanding_geometric": None if understood is None else math.cbrt(understood),
        "lucky_guess_indicator": None if found is None else s["correct"] / s["judged"] - found,  # so judged > 0
        "finding_precision_weighted": _over(s["credited"], s["findings"]),
        "target_detection_rate_severity_weighted": _over(s["severity found"], s["severity"]),
    }


def _deviation(s: Sums, name: str, ddof: int) -> float | None:
    n = s["n", name]
    if n <= ddof:
        return None
    return math.sqrt(max(0.0, s["squared", name] - s[name] ** 2 / n) / (n - ddof))


def _wilson(k: float, n: float) -> tuple[float, float]:
    z = 1.959963984540054
    centre, half = k + z * z / 2, z * math.sqrt(k * (n - k) / n + z * z / 4)
    return (centre - half) / (n + z * z), (centre + half) / (n + z * z)


Estimate = tuple[float | None, float | None, float | None, float | None]  # value, se, ci_low, ci_high
UNKNOWN: Estimate = (None, None, None, None)


def estimates(s: Sums) -> dict[str, Estimate]:
    """Compute the metrics whose intervals follow from a formula, with these intervals."""
    found: dict[str, Estimate] = {}
    for name, (successes, of) in RATES.items():
        k, n = s[successes], s[of]
        p = k / n if n else None
        se = math.sqrt(p * (1 - p) / (n - 1)) if p is not None and n >= 2 else None
        found[name] = UNKNOWN if p is None else (p, se, *_wilson(k, n))
    for name in MEANS:
        n, deviation = s["n", name], _deviation(s, name, 1)
        if deviation is None:
            found[name] = (_over(s[name], n), None, None, None)
            continue
        mean, se = s[name] / n, deviation / math.sqrt(n)
        reach = float(stdtrit(n - 1, 0.975)) * se
        found[name] = (mean, se, mean - reach, mean + reach)
    for name in ("tp", "tn", "fp", "fn"):
        found[name] = (s[name], None, None, None)
    return found


def measure(rows: Iterable[Row], draws: int, seed: int) -> dict[Group, dict[str, Estimate]]:
    """Compute every metric of every slice; with `draws` 0 without the intervals of the bootstrap."""
    clusters: dict[Group, dict[str, Sums]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    totals: dict[Group, Sums] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        for name in SLICES:
            value = "" if name == "all" else row[name]
            if value is not None:
                group = (row["model"], row["judge"], name, str(value))
                add_up(row, clusters[group][row["cluster"]] if draws else totals[group])
    for group, own in clusters.items():
        for sums in own.values():
            _merge(totals[group], sums)
    chance = random.Random(seed)
    return {
        group: estimates(s) | _drawn(list(clusters[group].values()) if draws else [], s, draws, chance)
        for group, s in totals.items()
    }


def _merge(into: Sums, sums: Sums) -> None:
    for key, value in sums.items():
        into[key] += value


def _drawn(clusters: list[Sums], actual: Sums, draws: int, chance: random.Random) -> dict[str, Estimate]:
    bins = adaptive_bins(actual)
    values = composites(actual, bins)
    resampled: dict[str, list[float]] = {name: [] for name in values}
    for _ in range(draws):
        s: Sums = defaultdict(float)
        for sums in chance.choices(clusters, k=len(clusters)):
            for key, value in sums.items():
                s[key] += value
        for name, drawn in composites(s, bins).items():
            if drawn is not None:
                resampled[name].append(drawn)
    return {name: (value, *_spread(sorted(resampled[name]), value)) for name, value in values.items()}


def _spread(ordered: list[float], value: float | None) -> tuple[float | None, float | None, float | None]:
    n = len(ordered)
    if n < 2 or value is None:
        return None, None, None
    mean = sum(ordered) / n
    error = math.sqrt(sum((x - mean) ** 2 for x in ordered) / (n - 1))

    def at(share: float) -> float:
        below = int(share * (n - 1))
        rest = share * (n - 1) - below
        return ordered[below] + rest * (ordered[min(below + 1, n - 1)] - ordered[below])

    return error, at(0.025), at(0.975)
