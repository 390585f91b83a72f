"""Suites: where they are found, and what they say of themselves."""

import subprocess
import sys
from pathlib import Path

import pytest

from evalake.core.errors import SuiteError, UsageError
from evalake.metrics.compute import definition_hash
from evalake.suites.places import Manifest, Place, manifest, places
from evalake.suites.registry import all_contracts, suite, suite_names

# Suites are found by their folders, imported by name, and hold together.


def test_every_suite_is_found_by_its_name() -> None:
    assert "command_guard" in suite_names()
    for name in suite_names():
        found = suite(name)
        assert found.name == name
        assert suite(name) is found


@pytest.mark.parametrize("name", ["", "nothing", "../command_guard", "command_guard.suite"])
def test_an_unknown_suite_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=r"(choose one of .*|did you mean )command_guard"):
        suite(name)


def test_every_table_has_one_contract() -> None:
    tables = [contract.table for contract in all_contracts()]
    assert len(set(tables)) == len(tables)
    assert {"calls", "samples", "command_guard_results"} <= set(tables)


@pytest.mark.parametrize("name", ["command_guard", "session_review", "solidity_audit"])
def test_the_contracts_of_a_suite_are_found_without_the_suite(name: str) -> None:
    script = (
        "import sys; from evalake.suites.registry import all_contracts, suite; listed = all_contracts()\n"
        f"print('evalake.suites.{name}.suite' in sys.modules, {{*suite('{name}').contracts}} <= {{*listed}})"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


def test_what_suites_say_of_themselves_fits_together() -> None:
    for found in map(suite, suite_names()):
        names = [metric.name for metric in found.all_metrics(found.options)]
        assert len(set(names)) == len(names)
        assert set(found.metrics.headline) <= set(names)
        assert set(found.results.partition_by) <= {column.name for column in found.results.columns}
        used = {"cost_usd": "cost_usd_total", "input_tokens": "input_tokens", "output_tokens": "output_tokens"}
        assert {metric for column, metric in used.items() if column in found.results.column} <= set(names)
        assert definition_hash(found.all_metrics(found.options))
        assert all(found.data.read(source).samples for source in found.data.starter)


# What suites say of themselves in `suite.toml` is what they are, and is read without importing one.

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", suite_names())
def test_a_manifest_says_what_its_suite_is(name: str) -> None:
    declared, told = suite(name), manifest(places()[name])
    assert told.asks
    assert told.examples
    assert (told.prompt_types, told.starter) == (declared.prompts.types, declared.data.starter)
    assert {*told.models, *told.judges} == {f"baseline/{each}" for each in declared.conversation.baselines}
    assert {*declared.conversation.default_judges} <= {*told.judges}
    if declared.conversation.asks_subject:
        assert told.models == declared.conversation.default_models


def test_no_suite_is_imported_for_it() -> None:
    code = (
        "import sys; from evalake.suites.places import manifest, places\n"
        "[manifest(each) for each in places().values()]\n"
        "print([name for name in ('polars', 'evalake.sdk', 'prefect', 'litellm') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[]\n"


def test_a_suite_may_say_nothing_and_one_that_says_it_wrongly_is_named(tmp_path: Path) -> None:
    place = Place("mine", "here", "mine.suite", folder=tmp_path)
    assert manifest(place) == Manifest()
    for text in ("asks = ", "nonsense = 1"):
        (tmp_path / "suite.toml").write_text(text)
        with pytest.raises(SuiteError, match=r"suite\.toml"):
            manifest(place)
