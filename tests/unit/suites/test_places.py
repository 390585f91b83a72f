"""What suites say of themselves in `suite.toml` is what they are, and is read without importing one."""

import subprocess
import sys
from pathlib import Path

import pytest

from evalake.core.errors import SuiteError
from evalake.suites.places import Manifest, Place, manifest, places
from evalake.suites.registry import suite, suite_names

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
