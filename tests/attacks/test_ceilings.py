"""A folder's own `evalake.toml`: it makes no call cost more, and every ceiling is the lowest that anybody set."""

from pathlib import Path

import pytest

from evalake.core.configuration import Configuration, read_configuration
from evalake.core.errors import ProviderError
from evalake.models.cost import most_usd
from evalake.models.routes import find_route
from evalake.request import RunRequest
from evalake.tasks.preflight import Plan, check
from tests.cases import cases_beside
from tests.integration.cli.command import evalake_here
from tests.integration.models.support import request

CASES = cases_beside(__file__, "costly.json")

MODEL = "openai/gpt-4o-mini"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that a stranger made, and a user who has ceilings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user-3141592653")
    (tmp_path / "config" / "evalake").mkdir(parents=True)
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    return work


def users(text: str) -> None:
    Path("../config/evalake/evalake.toml").write_text(text)


def folders(text: str) -> Configuration:
    Path("evalake.toml").write_text(text)
    return read_configuration()


COSTLY = CASES["costly"]


@pytest.mark.parametrize("line", COSTLY)
def test_a_folder_makes_no_call_cost_more(line: str) -> None:
    configuration = folders(f'[models."{MODEL}"]\n{line}\n')
    with pytest.raises(ProviderError, match=r"evalake\.toml of the working directory .*--trust-folder"):
        find_route(MODEL, configuration)
    find_route(MODEL, read_configuration(Path("evalake.toml")))  # as the user's own it may


@pytest.mark.parametrize("line", COSTLY[:3])
def test_the_command_asks_nothing_then(line: str, tmp_path: Path) -> None:
    folders(f'[models."{MODEL}"]\n{line}\n')
    words = ("run", "command_guard", "--models", MODEL, "--max-cost", "0.01", "--limit", "2")
    done = evalake_here(*words, "--lake", tmp_path / "lake", folder=Path.cwd())
    assert done.returncode == 2
    assert "--trust-folder" in done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("line", ["parameters = { temperature = 0, seed = 1, extra_body = { top_k = 3 } }", ""])
def test_it_may_say_what_costs_nothing(line: str) -> None:
    assert find_route(MODEL, folders(f'[models."{MODEL}"]\n{line}\n')).model == MODEL


def test_no_folder_puts_a_model_behind_a_baseline() -> None:
    with pytest.raises(ProviderError, match="replaces it by openai/o1-pro"):
        find_route("baseline/always-block", folders('[models."baseline/always-block"]\nmodel = "openai/o1-pro"\n'))


def test_a_name_that_is_nobodys_may_stand_for_a_model() -> None:
    assert find_route("careful", folders(f'[models.careful]\nmodel = "{MODEL}"\n')).model == MODEL


def plan(**order: float) -> Plan:
    return check(RunRequest("command_guard", lake="lake", models=[MODEL], limit=1, **order))  # type: ignore[arg-type]


@pytest.mark.parametrize(("user", "here", "asked", "holds"), CASES["lowest"])
def test_the_lowest_ceiling_holds(user: float | None, here: float | None, asked: float | None, holds: float) -> None:
    users("" if user is None else f"max_cost_usd = {user}\nmax_calls = {int(user * 10)}\n")
    folders("batch_size = 7\n" if here is None else f"max_cost_usd = {here}\nmax_calls = {int(here * 10)}\n")
    calls = None if asked is None else int(asked * 10)
    ceiling = plan(max_cost_usd=asked, max_calls=calls).ceiling  # type: ignore[arg-type]
    assert (ceiling.usd, ceiling.calls) == (holds, int(holds * 10))


def test_the_users_alarm_and_attempts_hold_too() -> None:
    users("[alarms]\ncost_usd_a_day = 5\n[service]\ncompletion_usd_a_day = 1\n[providers.openai]\nattempts = 2\n")
    service = "[service]\ncompletion_usd_a_day = 100000\ncompletions_an_hour = 9999\n"
    configuration = folders(f"{service}[alarms]\ncost_usd_a_day = 500\n[providers.openai]\nattempts = 90\n")
    assert (configuration.service.completion_usd_a_day, configuration.service.completions_an_hour) == (1, 60)
    assert configuration.alarms.cost_usd_a_day == 5
    assert configuration.limits("openai").attempts == 2
    assert folders("batch_size = 7\n").limits("openai").attempts == 2
    assert folders("[providers.groq]\nattempts = 90\n").limits("groq").attempts == 5
    assert folders("[providers.groq]\nattempts = 1\n").limits("groq").attempts == 1
    assert read_configuration(Path("evalake.toml")).limits("groq").attempts == 1
    assert not configuration.trusted


def test_several_replies_of_one_call_are_held_back_for() -> None:
    one, five = (most_usd(request("x", MODEL, max_tokens=1000, n=n), None, None) for n in (1, 5))
    assert one is not None
    assert five is not None
    assert five > 4 * one
    schema = {"type": "json_schema", "json_schema": {"schema": {"enum": ["word"] * 9000}}}
    by_schema = most_usd(request("x", MODEL, max_tokens=1000, response_format=schema), None, None)
    assert by_schema is not None
    assert by_schema > 2 * one
