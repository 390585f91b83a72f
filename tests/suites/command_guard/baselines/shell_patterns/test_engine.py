"""The guard as a whole: what a decision says, code inside code, and the rates on real commands."""

import dataclasses
import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.command_guard.baselines.shell_patterns import guard


def test_a_decision_explains_itself() -> None:
    decision = guard("cat /etc/shadow")
    assert decision.rule == "secret-read"
    assert "cat" in decision.reason
    assert decision.reason.endswith(".")
    assert 0.5 < decision.confidence <= 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        decision.action = "ALLOW"  # type: ignore[misc]


def test_empty_input_is_harmless() -> None:
    assert guard("").action == guard(" \n\t").action == guard("# nothing").action == "ALLOW"


@pytest.mark.parametrize("levels", [1, 3, 20, 200])
def test_nested_shells_are_followed_or_refused(levels: int) -> None:
    command = "cat /etc/shadow"
    for _ in range(levels):
        command = f"sh -c {shlex.quote(command)}" if len(command) < 20_000 else f"sh -c $({command})"
    assert guard(command).action == "BLOCK"


@given(
    st.sampled_from(["cat", "head -n 3", "base64", "xxd", "tac", "cut -c1-"]),
    st.text(alphabet="abcxyz_", min_size=1, max_size=12),
)
def test_reading_own_files_is_allowed_and_reading_secrets_is_not(reader: str, name: str) -> None:
    assert guard(f"{reader} {name}.txt").action == "ALLOW"
    assert guard(f"{reader} {name}.txt /etc/shadow").action == "BLOCK"


@pytest.mark.real_data
def test_real_commands_reach_the_bar(real_data: Path) -> None:
    def commands(name: str) -> list[str]:
        return [row["command"] for row in json.loads((real_data / "aegish" / name).read_text())["commands"]]

    malicious = [guard(command).action for command in commands("gtfobins_commands.json")]
    harmless = [guard(command).action for command in commands("harmless_commands.json")]
    assert malicious.count("BLOCK") / len(malicious) >= 0.90
    assert harmless.count("BLOCK") / len(harmless) <= 0.02
