"""Decisions as reports tell them."""

from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from evalake.core.configuration import VIEWER_URL
from evalake.metrics.composite import Composite, Parts
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Rate
from evalake.metrics.intervals import Array
from evalake.metrics.limits import clopper_pearson, measure_exact
from evalake.reports.files import junit_of_gate, markdown_of_gate
from evalake.reports.gate import Checked, Gate
from evalake.reports.page import items_address
from evalake.reports.ranking import Decision, Limits, Verdict, as_judged, decide, decide_whatever_is_missing
from evalake.reports.report import Subject
from tests.unit.reports.samples import guard_metrics, report
from tests.unit.reports.test_console import printed

# What an interval says of a target, and how many samples are missing.


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.85, 0.95, Verdict.PASS),
        (0.70, 0.85, Verdict.UNDECIDED),
        (0.70, 0.849, Verdict.FAIL),
        (0.80, 0.90, Verdict.UNDECIDED),
        (None, None, Verdict.UNDECIDED),
    ],
)
def test_the_whole_interval_decides(low: float | None, high: float | None, verdict: Verdict) -> None:
    assert decide(0.84, low, high, 50, 0.85).verdict is verdict


def test_where_less_is_better_the_ends_change_places() -> None:
    assert decide(0.1, 0.05, 0.2, 50, 0.2, higher_is_better=False).verdict is Verdict.PASS
    assert decide(0.3, 0.21, 0.4, 50, 0.2, higher_is_better=False).verdict is Verdict.FAIL
    assert decide(0.2, 0.1, 0.3, 50, 0.2, higher_is_better=False) == Decision(Verdict.UNDECIDED)


def test_more_samples_settle_a_rule_with_80_percent_power() -> None:
    """A limit of 1.96 standard errors must reach 2.80 of them: twice as near, and as sure, takes 8.2 times as many."""
    above = decide(0.88, 0.82, 0.92, 100, 0.85)
    assert above.verdict is Verdict.UNDECIDED
    assert above.more_samples == pytest.approx(100 * ((0.06 / 0.03 * 2.8016 / 1.96) ** 2 - 1), abs=1)
    assert above.more_at_least == pytest.approx(100 * ((0.06 / 0.07 * 2.8016 / 1.96) ** 2 - 1), abs=1)
    assert above.text == f"UNDECIDED +{above.more_samples}"
    assert decide(0.85, 0.8, 0.9, 100, 0.85).text == "UNDECIDED"


@pytest.mark.parametrize(("rate", "target"), [(0.9, 0.8), (0.66, 0.75), (0.97, 0.93)])
def test_so_many_samples_settle_it_in_four_of_five_runs(rate: float, target: float) -> None:
    low, high = (float(end) for end in clopper_pearson(50 * rate, 50))
    advised = decide(rate, low, high, 50, target, trials=50).more_samples
    assert advised is not None
    size = 50 + advised
    right = np.random.default_rng(4).binomial(size, rate, 4_000)
    lows, highs = clopper_pearson(right, np.full(4_000, size))
    settled = (lows >= target) if rate > target else (highs < target)
    assert 0.72 <= settled.mean() <= 0.88


def test_nothing_passes_below_20_units_unless_the_rule_says_so() -> None:
    few = decide(1.0, 0.9, 1.0, 12, 0.85)
    assert (few.verdict, few.more_samples, few.reason) == (Verdict.UNDECIDED, 8, "fewer than 20 units never pass")
    one_less = decide(1.0, 0.9, 1.0, 19, 0.85)
    for decision, words in ((few, "8 more units"), (one_less, "1 more unit")):
        told = Checked("rule", "m", None, decision, reason=decision.reason).detail
        assert told == f"unknown, {words}, fewer than 20 units never pass"
    assert decide(1.0, 0.9, 1.0, 12, 0.85, fewest=10).verdict is Verdict.PASS
    assert decide(0.2, 0.1, 0.3, 12, 0.85).verdict is Verdict.FAIL


def test_what_is_missing_takes_a_verdict_that_it_may_change() -> None:
    row = {"value": 0.9, "ci_low": 0.86, "ci_high": 0.93, "units": 200}
    assert decide_whatever_is_missing(row, (0.85, 0.94), 0.85).verdict is Verdict.PASS
    for widened in ((0.6, 0.95), (None, None)):
        held = decide_whatever_is_missing(row, widened, 0.85)
        assert (held.verdict, held.more_samples) == (Verdict.UNDECIDED, None)
        assert held.reason == "it would pass, but what is missing may change that"
    assert decide_whatever_is_missing(row, (0.8, 0.97), 0.95).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(("rate", "n"), [(0.995, 30), (0.85, 100), (0.98, 60), (0.5, 40)])
def test_a_proportion_exactly_at_its_target_errs_in_at_most_2_5_percent_to_either_side(rate: float, n: int) -> None:
    """Over every count of successes, weighed by how likely it is: Wilson's interval fails in 14 % at .995 and 30."""
    k = np.arange(n + 1)
    low, high = clopper_pearson(k, np.full(n + 1, n))
    chance = binom.pmf(k, n, rate)
    verdicts = [decide(x / n, a, b, n, rate).verdict for x, a, b in zip(k, low, high, strict=True)]
    for verdict in (Verdict.PASS, Verdict.FAIL):
        assert sum(p for p, each in zip(chance, verdicts, strict=True) if each is verdict) <= 0.025


@pytest.mark.parametrize("name", ["accuracy", "balanced accuracy"])
def test_a_model_near_perfection_is_not_failed_by_its_limits(name: str) -> None:
    times, samples, target = 3_000, 30, 0.995
    drawn = np.random.default_rng(11).random((times, samples)) < target
    model, sample = (number.ravel() for number in np.indices(drawn.shape))
    frame = pl.DataFrame({"model": model, "cluster": sample, "right": drawn.ravel()}).with_columns(
        judge=pl.lit(None, pl.String), positive=pl.col("cluster") % 2 == 0
    )
    metric = next(each for each in JUDGED if each.name == name)
    rows = measure_exact(frame, [metric]).select("value", "ci_low", "ci_high", "units").iter_rows()
    assert sum(decide(v, a, b, n, target).verdict is Verdict.FAIL for v, a, b, n in rows) / times <= 0.0275


def test_together_several_rules_err_as_rarely_as_one_where_that_is_asked() -> None:
    right = np.random.default_rng(3).random((400, 10, 100)) < 0.9
    model, rule, sample = (number.ravel() for number in np.indices(right.shape))
    frame = pl.DataFrame({"model": model, "judge": rule.astype(str), "cluster": sample, "right": right.ravel()})
    failed = {}
    for error in (0.05, 0.005):
        rows = measure_exact(frame, [JUDGED[0]], error)
        failed[error] = rows.filter(pl.col("ci_high") < 0.9)["model"].n_unique() / 400
    assert failed[0.005] <= 0.025 * 1.1
    assert failed[0.05] > 0.08


def halved(parts: Parts) -> Array:
    return (parts["positive"] + parts["negative"]) / 2


SIDES = {"positive": Rate(pl.col("right"), pl.col("positive")), "negative": Rate(pl.col("right"), ~pl.col("positive"))}
JUDGED = [Metric("accuracy", Rate(pl.col("right"))), Metric("balanced accuracy", Composite(halved, SIDES))]


@pytest.mark.parametrize("repeats", [1, 5])
def test_a_model_exactly_at_the_target_rarely_passes_and_a_better_one_never_fails(repeats: int) -> None:
    rng, times, samples, target = np.random.default_rng(repeats), 2_000, 100, 0.85
    shape = times, samples, repeats
    chance = rng.beta(target / 2, (1 - target) / 2, (times, samples, 1)) if repeats > 1 else target
    drawn = rng.random(shape)
    model, sample, _ = (number.ravel() for number in np.indices(shape))
    frame = pl.DataFrame({"model": model, "sample": sample, "right": (drawn < chance).ravel()}).with_columns(
        judge=pl.lit(None, pl.String), cluster=pl.col("sample"), positive=pl.col("sample") % 2 == 0
    )
    better = frame.with_columns(right=pl.col("right") | pl.Series(drawn.ravel() > 0.3))
    for answered, metric in product((frame, better), JUDGED):
        rows = measure(answered, [metric], cluster="cluster").select("value", "ci_low", "ci_high", "units").iter_rows()
        verdicts = [decide(*row, target).verdict for row in rows]  # type: ignore[call-arg, arg-type]
        if answered is frame:
            assert verdicts.count(Verdict.PASS) / times <= 0.03
            assert verdicts.count(Verdict.UNDECIDED) / times >= 0.92
        else:
            assert Verdict.FAIL not in verdicts
            assert verdicts.count(Verdict.PASS) / times >= 0.9


def test_a_report_says_so_in_its_table_and_headline() -> None:
    text = printed(report(guard_metrics("a", 0.88, 0.88)))
    assert "UNDECIDED +" in text
    assert "0 of 1 reach the target of at least 85.0% score; 1 undecided" in text
    assert "`evalake settle` decides in rounds" in " ".join(text.split())


def test_a_report_decides_and_advises_by_the_limits_of_the_gate_and_shows_them() -> None:
    limits = Limits((0.79, 0.94), (0.79, 0.94), trials=80)
    built = replace(report(guard_metrics("a", 0.88, 0.88)), limits={("a", None): limits})
    decision = decide(0.88, 0.79, 0.94, 40, 0.85, trials=80)
    assert built.decision(Subject("a")) == decision != decide(0.88, 0.79, 0.94, 40, 0.85)
    text = " ".join(printed(built).split())
    assert all(each in text for each in (decision.text, "by [79.0–94.0]", "the limits that decided"))


def test_a_consensus_of_dawid_and_skene_never_decides_pass() -> None:
    by_consensus, by_majority = "panel:dawid_skene:a+b+c", "panel:a+b+c"
    passed, failed = decide(0.9, 0.86, 0.95, 200, 0.85), decide(0.5, 0.4, 0.6, 200, 0.85)
    assert as_judged(passed, by_consensus).verdict is Verdict.UNDECIDED
    assert as_judged(passed, by_majority) == as_judged(passed, None) == passed
    assert as_judged(failed, by_consensus) == failed


# A gate's verdict, and its JUnit XML and Markdown, with names that try to be markup.

HOSTILE = "m<b>|`x`\x1b[31m\n# owned\x00"


def gate(*verdicts: Verdict) -> Gate:
    """A gate with a check of each verdict."""
    return Gate("r", "b", [Checked("a >= 1", HOSTILE, None, Decision(each), 0.5) for each in verdicts], ["<note>"])


@pytest.mark.parametrize(
    ("verdicts", "overall", "code"),
    [
        ((Verdict.PASS, Verdict.PASS), Verdict.PASS, 0),
        ((Verdict.PASS, Verdict.UNDECIDED), Verdict.UNDECIDED, 3),
        ((Verdict.UNDECIDED, Verdict.FAIL, Verdict.PASS), Verdict.FAIL, 1),
    ],
)
def test_the_worst_verdict_is_the_gates(verdicts: tuple[Verdict, ...], overall: Verdict, code: int) -> None:
    assert (gate(*verdicts).verdict, gate(*verdicts).exit_code) == (overall, code)


def test_junit_counts_failures_and_shows_nothing_undecided_green() -> None:
    root = ElementTree.fromstring(junit_of_gate(gate(Verdict.PASS, Verdict.FAIL, Verdict.UNDECIDED)))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    cases = root.findall("./testsuite/testcase")
    assert [[child.tag for child in case] for case in cases] == [["system-out"], ["failure"], ["error"]]
    assert "m<b>|`x`" in (cases[0].get("classname") or "")


def test_markdown_keeps_a_row_a_row() -> None:
    table = [line for line in markdown_of_gate(gate(Verdict.FAIL)).splitlines() if line.startswith("|")]
    assert len(table) == 3
    assert "m\\<b\\>\\|" in table[2]
    assert "\x1b" not in table[2]


# Links of reports lead to the viewer that is named, and names of others stay within their part of an address.


def test_filters_that_choose_nothing_are_left_out_and_names_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VIEWER_URL, "http://v")
    assert items_address("r", model=None, judge=None) == "http://v/runs/r/items"
    assert items_address("../r?x", model="a/b&c=d", judge=None) == "http://v/runs/..%2Fr%3Fx/items?model=a%2Fb%26c%3Dd"
    assert items_address("r", model="\udcff").endswith("?model=%3F")  # half a character has no other spelling
