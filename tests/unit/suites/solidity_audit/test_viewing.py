"""How the viewer shows an audit: its verdict, why there is none, and the flags by which audits are chosen."""

from typing import Any

import polars as pl
import pytest

from evalake.suites.solidity_audit.contract import RESULTS
from evalake.suites.solidity_audit.viewing import VIEWING
from tests.unit.suites.solidity_audit.panels.material import derived_of, said
from tests.unit.suites.solidity_audit.support import SAFE, finding, found, judgement, landed, line, missed, rows_of


def shown(rows: pl.DataFrame) -> dict[str, Any]:
    """What the viewer makes of a row, and the names of its flags that are up."""
    verdict, correct, error = VIEWING.verdict, VIEWING.correct, VIEWING.error
    assert verdict is not None
    assert correct is not None
    assert error is not None
    told = rows.select(verdict=verdict, correct=correct, error=error, **VIEWING.flags).row(0, named=True)
    return told | {"flags": {name for name in VIEWING.flags if told[name]}}


@pytest.mark.parametrize(
    ("given", "verdict", "correct", "flags"),
    [
        (line(judged=found()), "vulnerable", True, set()),
        (line(judged=missed(said=False)), "safe", False, {"target_missed"}),
        (line(judged=missed(said=None)), None, False, {"target_missed"}),
        (line(judged=missed(finding(1, "HALLUCINATED"))), "vulnerable", True,
         {"target_missed", "lucky_guess", "hallucinated_findings"}),
        (line(truth=SAFE, judged=judgement(said=True)), "vulnerable", False, {"false_alarm"}),
        (line(truth=SAFE, judged=judgement(said=False)), "safe", True, set()),
        (line(judged=found() | {"findings": [finding(1, is_valid_concern=False)]}), "vulnerable", True,
         {"contradictory_judgement"}),
    ],
)  # fmt: skip
def test_an_audit_is_told_by_its_verdict_and_chosen_by_its_flags(
    given: dict[str, Any], verdict: str | None, correct: bool, flags: set[str]
) -> None:
    told = shown(rows_of([given])[0])
    assert (told["verdict"], told["correct"], told["flags"], told["error"]) == (verdict, correct, flags, None)


def test_where_there_is_no_judgement_the_reason_stands_in_its_place() -> None:
    told = shown(rows_of([line(judge_error="unparseable judgement")])[0])
    assert (told["error"], told["correct"], told["flags"]) == ("unparseable judgement", None, set())
    refused = rows_of([line()])[0].with_columns(subject_error=pl.lit("content_policy"))
    assert shown(refused)["error"] == "content_policy"


def test_a_panel_that_does_not_decide_is_flagged() -> None:
    lines = [line(judged=said(answer), judge=judge) for judge, answer in (("a", True), ("b", False))]
    told = shown(landed(derived_of(lines).rows[RESULTS.table]))
    assert told["flags"] == {"panel_undecided"}
