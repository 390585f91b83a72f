"""A suite's options: its own defaults under what the configuration says, and what is refused."""

from typing import Any

import pytest

from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError
from evalake.suites.registry import suite
from evalake.tasks.runtime.context import RunContext, options_of, prompt_types_of

GUARD = suite("command_guard")


def configured(**options: Any) -> Configuration:
    return Configuration(suites={GUARD.name: options})


def test_the_configuration_goes_before_the_suite(guard: RunContext) -> None:
    assert guard.options == GUARD.options
    assert options_of(GUARD, configured(target=0.5)) == {**GUARD.options, "target": 0.5}


@pytest.mark.parametrize(
    ("configuration", "told"),
    [
        (Configuration(suites={"poetry": {}}), "options of the unknown suite poetry: choose one of command_guard"),
        (configured(volume=11), "command_guard has no option volume: its options are"),
        (configured(target=1.5), "a number from 0 to 1, not 1.5"),
        (configured(target=True), "a number from 0 to 1, not True"),
        (configured(prompts={"direct": {"system": "x"}}), "the name of a prompt type of the suite"),
        (configured(prompts={"mine": {"melody": "x"}}), "has no part melody"),
    ],
)
def test_what_there_is_not_is_named(configuration: Configuration, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        options_of(GUARD, configuration)


def test_an_option_that_nobody_gave_a_value_is_no_part_of_any_definition() -> None:
    audits = suite("solidity_audit")
    assert "aggregation" not in options_of(audits, Configuration())
    given = Configuration(suites={audits.name: {"aggregation": "dawid_skene"}})
    assert options_of(audits, given)["aggregation"] == "dawid_skene"


def test_prompt_types_are_the_suites_and_then_the_users() -> None:
    options = options_of(GUARD, configured(prompts={"mine": {"system": "Guard."}}))
    assert prompt_types_of(GUARD, options) == (*GUARD.prompts.types, "mine")
