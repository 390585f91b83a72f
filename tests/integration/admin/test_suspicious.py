"""Suspicious replies: which they are, and that a withdrawn one is asked again, lands once more and is replaced."""

from pathlib import Path
from typing import Any

import pytest

from evalake.admin.maintain import ask_again, suspicious
from evalake.contracts.tables import CALLS, CORE_CONTRACTS, WITHDRAWN_CALLS
from evalake.core.errors import UsageError
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.ledger import LedgerIndex
from evalake.storage.maintenance import maintain
from evalake.storage.sql.query import query
from tests.integration.storage.rows import call, key_of

WITHOUT_USAGE = dict.fromkeys(("input_tokens", "output_tokens"))
SAYS_NOTHING: dict[str, dict[str, Any]] = {
    "empty": {"response": None},
    "empty-without-usage": {"response": "", **WITHOUT_USAGE},
    "tool-call": {"response": "", "finish_reason": "tool_calls"},
    "error-finish": {"response": "half a", "finish_reason": "error"},
}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        *((changes, kind) for kind, changes in SAYS_NOTHING.items()),
        ({"response": " \n"}, "empty"),
        ({"response": "", "finish_reason": None}, "empty"),
        ({"response": "", "finish_reason": "content_filter"}, None),
        ({"response": "", "finish_reason": "length"}, None),
        ({"response": "yes"}, None),
        ({"response": "", "origin": "import"}, None),
    ],
)
def test_a_reply_is_suspicious_by_what_it_says_and_how_it_ended(
    tmp_path: Path, changes: dict[str, Any], kind: str | None
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    ledger.append(lake, [call(1) | changes])
    found = suspicious(lake)
    assert found.rows() == ([] if kind is None else [("run", "provider/model", kind, 1)])


def test_a_withdrawn_reply_answers_no_longer_and_the_next_one_is_the_reply(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    key = key_of(call(1))
    ledger.append(lake, [call(1, response=""), call(2)])
    ledger.append(lake, [call(1, response="late")])  # lost a race, and is no reply to fall back to
    assert ask_again(lake, "empty", dry_run=True)["replies"].sum() == 1
    assert LedgerIndex.read(lake).fetch([key]), "a dry run changes nothing"
    assert ask_again(lake, "empty")["replies"].sum() == 1
    assert ask_again(lake, "empty").is_empty()
    assert suspicious(lake).is_empty()
    index = LedgerIndex.read(lake)
    assert (index.fetch([key]), index.next_revision(key)) == ({}, 1)
    assert key_of(call(2)) in index.fetch([key, key_of(call(2))])
    ledger.append(lake, [call(1, response="mended", revision=1)])
    ledger.append(lake, [call(1, response="mended later", revision=1)])
    assert LedgerIndex.read(lake).fetch([key])[key]["response"] == "mended"
    shown = query(lake, CORE_CONTRACTS, "select response from replies order by all")
    assert shown["response"].to_list() == ["mended", "yes"]
    maintain(lake, [CALLS, WITHDRAWN_CALLS])
    assert sorted(lake.frame(CALLS).collect()["response"]) == ["", "mended", "yes"], "losers of races go, no revision"
    assert LedgerIndex.read(lake).fetch([key])[key]["response"] == "mended"


def test_only_what_was_named_is_withdrawn(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    ledger.append(lake, [call(n, run_id=run, response="") for n, run in enumerate("abb")])
    with pytest.raises(UsageError, match=r"choose one of error-finish, tool-call, empty"):
        ask_again(lake, "odd")
    assert ask_again(lake, "empty", "none").is_empty()
    assert ask_again(lake, "empty", model="another").is_empty()
    assert ask_again(lake, "empty", "b", "provider/model").rows() == [("b", "provider/model", "empty", 2)]
    assert suspicious(lake)["run_id"].to_list() == ["a"]
