"""The form of a run, as Prefect's server checks what comes from it: known names are choices, any other is taken."""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import is_valid

from evalake.core.errors import UsageError
from evalake.flows.evaluate import evaluate
from evalake.request import OPTIONS, RunRequest
from evalake.suites.registry import suite_names
from tests.cases import cases_beside

CASES = cases_beside(__file__, "form.json")

SCHEMA: dict[str, Any] = parameter_schema(evaluate).model_dump()
SUITE = suite_names()[0]
ROOT = Path(__file__).resolve().parents[3]


def alternatives(parameter: str) -> dict[str, Any]:
    """The tabs of a parameter by their titles."""
    return {each["title"]: each for each in SCHEMA["properties"][parameter]["anyOf"]}


def test_the_suite_is_a_choice() -> None:
    assert SCHEMA["properties"]["suite"]["enum"] == list(suite_names())
    assert SCHEMA["required"] == ["suite"]


@pytest.mark.parametrize("parameter", ["models", "judges", "datasets", "prompt_types"])
def test_names_begin_as_a_choice_of_several_with_none_chosen(parameter: str) -> None:
    assert SCHEMA["properties"][parameter]["default"] == []
    first = SCHEMA["properties"][parameter]["anyOf"][0]
    assert (first["type"], first["title"]) == ("array", "choose")
    assert first["items"]["enum"]


def test_what_is_known_is_offered() -> None:
    assert "baseline/shell-patterns" in alternatives("models")["choose"]["items"]["enum"]
    assert "baseline/rubric-judge" in alternatives("judges")["choose"]["items"]["enum"]
    assert alternatives("datasets")["choose"]["items"]["enum"] == ["starter"]
    assert "chain_of_thought" in alternatives("prompt_types")["choose"]["items"]["enum"]


@pytest.mark.parametrize(("given", "taken"), CASES["taken"])
def test_the_server_takes_any_name_and_no_unknown_suite(given: dict[str, Any], taken: bool) -> None:
    assert is_valid({"suite": SUITE, **given}, SCHEMA) is taken


def fields() -> Iterator[Any]:
    """Every parameter of every deployment that people start, with its schema."""
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    for entrypoint in sorted({each["entrypoint"] for each in deployments}):
        module, name = re.fullmatch(r"(.+?)(?:\.py)?[:.](\w+)", entrypoint).groups()  # type: ignore[union-attr]
        schema = parameter_schema(getattr(importlib.import_module(module.replace("/", ".")), name))
        for parameter, field in schema.properties.items():
            yield pytest.param(field, id=f"{name}-{parameter}")


@pytest.mark.parametrize("field", list(fields()))
def test_a_field_of_a_form_is_plain_or_has_words_on_each_of_its_tabs(field: dict[str, Any]) -> None:
    assert len(field["description"]) > 10
    assert "type" in field or all(tab["title"] not in ("", "null") for tab in field["anyOf"])
    assert field.get("default") in (None, [], "", False) or isinstance(field["default"], int | float)
    # An untouched form sends every default, and the server refuses the run if one does not fit its field
    assert "default" not in field or is_valid({"field": field["default"]}, {"properties": {"field": field}})


def test_chosen_samples_are_plain_fields_that_begin_empty() -> None:
    samples, failed = (SCHEMA["properties"][name] for name in ("samples", "only_failed"))
    assert (samples["type"], samples["items"], samples["default"]) == ("array", {"type": "string"}, [])
    assert (failed["type"], failed["default"]) == ("string", "")


def test_written_names_are_lists() -> None:
    written: dict[str, Any] = {"suite": SUITE, "models": "a/b, c/d\ne/f,", "datasets": "x, y.jsonl\nstarter\n"}
    read = RunRequest(**written)
    assert read.models == ("a/b", "c/d", "e/f")
    assert read.datasets == ("x, y.jsonl", "starter")


def test_every_option_of_a_run_is_a_field_with_its_help_and_default() -> None:
    fields = SCHEMA["properties"]
    assert list(fields) == list(OPTIONS)
    assert [field["description"] for field in fields.values()] == [option.text for option in OPTIONS.values()]
    defaults = {name: option.default for name, option in OPTIONS.items() if name != "suite"}
    assert {name: fields[name]["default"] for name in defaults} == {
        name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()
    }


def test_no_pattern_is_longer_than_a_person_reads() -> None:
    assert max(len(found) for found in re.findall(r'"pattern": "([^"]*)"', json.dumps(SCHEMA))) < 250


@pytest.mark.parametrize(
    ("given", "said"),
    [({"limit": 0}, "--limit must be greater than or equal to 1, not 0"), ({"limt": 3}, "no option 'limt'")],
)
def test_a_run_that_cannot_be_fails_with_one_sentence(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        evaluate.fn(suite=SUITE, lake=str(tmp_path / "lake"), **given)
