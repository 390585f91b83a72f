"""The process of a query, started before what it is asked is known."""

import subprocess
import sys
from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from evalake.storage.sql.query import open_query
from evalake.storage.sql.start import _environment, start


def test_it_answers_what_it_is_asked_later(tmp_path: Path) -> None:
    with (
        start(str(tmp_path)) as process,
        open_query(Lake(str(tmp_path)), (), "select 1 as n", process=process) as result,
    ):
        assert result.frame().to_dicts() == [{"n": 1}]


def test_it_ends_where_nothing_is_asked() -> None:
    with pytest.raises(UsageError), start("lake") as started:
        raise UsageError("the command was wrong")
    assert started.process.returncode is not None


def test_it_is_started_before_anything_heavy_is_imported() -> None:
    heavy = "[m for m in ('polars', 'pyarrow', 'deltalake', 'pydantic', 'numpy') if m in sys.modules]"
    code = f"import sys; import evalake.storage.sql.start; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


KEYS_OF_MODELS = (
    "ANTHROPIC_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_AI_API_KEY",
    "AZURE_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "DATABASE_URL",
    "GOOGLE_API_KEY",
    "OPENAI_API_KEY",
    "PREFECT_API_KEY",
)


@pytest.mark.parametrize("lake", ["s3://bucket/lake", "./lake"])
def test_the_process_gets_no_key_of_a_provider(monkeypatch: pytest.MonkeyPatch, lake: str) -> None:
    for name in KEYS_OF_MODELS:
        monkeypatch.setenv(name, "hunter2")
    assert "hunter2" not in _environment(lake).values()


def test_the_process_gets_the_credentials_of_a_lake_that_asks_for_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the lake")
    assert _environment("s3://bucket/lake")["AWS_SECRET_ACCESS_KEY"] == "of the lake"
    assert "AWS_SECRET_ACCESS_KEY" not in _environment("file:///data/lake")
