"""The process of a query, started before what it is asked is known."""

import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import UsageError
from storage.lake import Lake
from storage.sql.query import open_query
from storage.sql.start import _environment, start


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
    code = f"import sys; import storage.sql.start; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_process_gets_no_key_of_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PREFECT_API_KEY", "DATABASE_URL"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the lake")
    environment = _environment()
    assert "hunter2" not in environment.values()
    assert environment["AWS_ACCESS_KEY_ID"] == "of the lake"
