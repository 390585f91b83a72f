"""The judge and the sources of the scoring service are looked up before it starts."""

from pathlib import Path

import pytest

from core.errors import EvalakeError
from service.scoring.settings import ScoringSettings
from storage.lake import Lake


def settings(tmp_path: Path, **changes: object) -> ScoringSettings:
    file = tmp_path / "evalake.toml"
    file.touch()
    return ScoringSettings(lake=Lake(str(tmp_path / "lake")), configuration_file=str(file), **changes)  # type: ignore[arg-type]


def test_the_embedded_judge_and_the_suites_criteria_are_the_default(tmp_path: Path) -> None:
    usual = settings(tmp_path)
    usual.check()
    assert usual.judge.startswith("baseline/")
    assert len(usual.criteria) == 64


@pytest.mark.parametrize(
    "changes",
    [
        {"judge": "nowhere/x"},
        {"sources": ("postgresql://me:hidden@host/db",)},
        {"sources": ("postgresql://me@host/db?sslmode=require",)},
        {"sources": ("mysql://me@host/db",)},
    ],
    ids=["judge", "password", "parameter", "driver"],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(EvalakeError) as refused:
        settings(tmp_path, **changes).check()
    assert "hidden" not in str(refused.value)
