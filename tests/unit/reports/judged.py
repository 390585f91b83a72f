"""Figures about judges and confidence, and the metric rows that they show."""

from typing import Any

from evalake.reports.report import Report
from evalake.sdk.figures import AgreementMatrix, ByJudge, Decisions, Quantity, Ranking, Reliability, Unit
from tests.unit.reports.samples import SCORE, metric, report

ACCURACY, CONFIDENCE = Quantity("accuracy", "accuracy"), Quantity("mean_confidence", "confidence")
KAPPA, WRONG = Quantity("cohen_kappa", "kappa", Unit.SCORE), Quantity("wrong", "wrong", higher_is_better=False)
RELIABILITY = Reliability("Reliability", ACCURACY, CONFIDENCE, "bin")
AGREEMENT, BY_JUDGE = AgreementMatrix("Agreement", KAPPA, "pair"), ByJudge("Wrong", WRONG)
DECISIONS = Decisions(
    "Decisions", (KAPPA, Quantity("icc", "ICC", Unit.SCORE)), (("", "found"), ("_fix", "fix")), "pair"
)


def by(judge: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as this judge's."""
    return [row | {"judge": judge} for row in rows]


def tenth(model: str, name: str, confidence: float, accuracy: float, n: int = 40) -> list[dict[str, Any]]:
    """What a model is in one tenth of stated confidence."""
    return [
        metric(model, of, value, n) | {"slice": "bin", "slice_value": name}
        for of, value in (("mean_confidence", confidence), ("accuracy", accuracy))
    ]


def of_two_judges() -> Report:
    """Judge x on two models, judge y on one of them, and their panel, which has no word on what was wrong."""
    rows = [row for model in ("a", "b") for row in by("x", [metric(model, "score", 0.9), metric(model, "wrong", 0.1)])]
    rows += by("y", [metric("a", "score", 0.9), metric("a", "wrong", 0.3)])
    rows += by("panel:x+y", [metric("a", "score", 0.9)])
    return report(rows, figures=(Ranking("", SCORE),))


def pairs_of_judges() -> Report:
    """The kappa of each pair of three judges; of x and z it is unknown."""
    pairs = {"x~y": 0.5, "x~z": None, "y~z": -0.2}
    rows = [metric("a", "score", 0.9)]
    rows += [
        metric("a", "cohen_kappa", value) | {"slice": "pair", "slice_value": pair} for pair, value in pairs.items()
    ]
    return report(by("panel:x+y+z", rows))
