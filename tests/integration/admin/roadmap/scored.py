"""Scored sessions in a lake, by what a judge said of each."""

from collections.abc import Sequence
from typing import Any

from evalake.contracts.engines.arrow import conform
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.score import score
from tests.unit.suites.session_review.support import item, session, talk


def absent(*tools: str, because: str = "it was not there") -> str:
    """A second answer that wishes for tools that do not exist."""
    return "## Do not exist\n\n" + "\n".join(f"{n}. **{tool}**: {because}" for n, tool in enumerate(tools, start=1))


def land_scores(lake: Lake, *said: tuple[str, int, str], judge: str = "judge-a", tags: Sequence[str] = ()) -> None:
    """Land one scoring for each session, total and second answer."""
    for name, total, second in said:
        asked = item(session(alert=f"alert of {name}"), judge=judge)
        rows = score(asked, talk(asked, f"{' and '.join(tags) or 'Good.'}\n{total}", second)[1])
        for contract in (RESULTS, MISSING_TOOLS):
            landed: list[dict[str, Any]] = [
                {**row, "landed_by_run": "r", "origin": "call"} for row in rows[contract.table]
            ]
            if contract is RESULTS:
                landed = [{**row, "sample_id": name} for row in landed]
            if landed:
                land(lake, contract, conform(landed, contract))
