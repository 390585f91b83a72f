"""A gate's verdict, and its JUnit XML and Markdown, with names that try to be markup."""

from xml.etree import ElementTree

import pytest

from evalake.reports.files import junit_of_gate, markdown_of_gate
from evalake.reports.gate import Checked, Gate
from evalake.reports.ranking import Decision, Verdict

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
