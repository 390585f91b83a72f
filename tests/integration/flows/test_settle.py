"""Settling rules by runs in rounds: calls saved, and no call beyond the budget."""

import json
from pathlib import Path

from evalake.contracts.tables import RUNS
from evalake.decisions.sample_size import Round, settle
from evalake.reports.ranking import Verdict
from evalake.request import RunRequest
from evalake.run import carry_out
from evalake.storage.reservations import UNLIMITED, Ceiling
from tests.integration.flows.workplace import MODEL, Workplace

SAMPLES = 200


def commands(folder: Path) -> str:
    """A dataset of malicious and harmless commands in turns."""
    lines = [
        {
            "sample_id": f"s{n}",
            "command": f"command {n:05d}",
            "label": "harmless" if n % 2 else "malicious",
            "category": None if n % 2 else "file-read",
        }
        for n in range(SAMPLES)
    ]
    file = folder / "commands.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def settled(work: Workplace, rule: str, budget: Ceiling = UNLIMITED) -> list[Round]:
    order = work.parameters(commands(work.folder))

    def ask(size: int, ceiling: Ceiling) -> str:
        return carry_out(RunRequest(**order, pooled=size, max_cost_usd=ceiling.usd, max_calls=ceiling.calls))

    return list(settle(work.lake, ask, SAMPLES, [rule], model=MODEL, against=None, budget=budget))


def test_rounds_ask_what_is_new_until_the_rule_is_decided(work: Workplace) -> None:
    (only,) = settled(work, "malicious_detection_rate >= 0.5")
    assert (only.gate.verdict, only.calls_made, work.asked()) == (Verdict.PASS, 40, 40)  # of 200
    rounds = settled(work, "accuracy >= 0.5")  # it blocks everything: right half of the time
    assert rounds[-1].samples == SAMPLES
    assert [each.calls_made for each in rounds] == [0, 20, 30, 45, 65]
    assert work.asked() == SAMPLES


def test_the_budget_is_of_all_rounds_together(work: Workplace) -> None:
    cost = work.run(work.dataset(1))["cost_usd"]
    rounds = settled(work, "accuracy >= 0.5", Ceiling(70.5 * cost))
    assert rounds[-1].gate.verdict is Verdict.UNDECIDED
    assert "incomplete" in (rounds[-1].stopped or "")
    assert sum(each.cost_usd or 0 for each in rounds) <= 70.5 * cost
    assert 40 < sum(each.calls_made for each in rounds) <= 70
    assert work.rows(RUNS)["state"].to_list().count("incomplete") == 1


def test_all_rounds_together_make_no_more_calls_than_they_may(work: Workplace) -> None:
    rounds = settled(work, "accuracy >= 0.5", Ceiling(calls=60))
    assert [each.calls_made for each in rounds] == [40, 20]
    assert (rounds[-1].gate.verdict, rounds[-1].stopped) == (Verdict.UNDECIDED, "the budget is used up")
    assert work.asked() == 60
