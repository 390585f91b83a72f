"""Progress of runs: its key, and what is counted for which run."""

import pytest

from tasks.runtime.progress import advance, ended, key_of, shown


def test_a_run_has_a_key_that_prefect_takes() -> None:
    assert key_of("run-1") == "progress-run-1"


def test_what_ends_is_counted_for_the_run_that_is_shown_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", lambda *_, **__: None)  # no server here
    advance("mine", by=4)  # before anybody shows it
    with shown("mine", "guard mine", 9):
        advance("mine", "first", 2)
        advance("nobody's", "first", 5)
        ended("mine", "second", 3)
        ended("mine", "second", 3)  # the same part, as another process says it again
        ended("nobody's", "second", 3)
    assert capsys.readouterr().err.splitlines()[-1] == "guard mine: 5 of 9"
