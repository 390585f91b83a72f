"""Which lake is meant: the one named, else the environment's, else a folder."""

import pytest

from evalake.core.configuration import DEFAULT_LAKE, lake_uri


def test_a_named_lake_comes_before_the_environments_and_that_before_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALAKE_LAKE", raising=False)
    assert lake_uri(None) == DEFAULT_LAKE
    monkeypatch.setenv("EVALAKE_LAKE", "s3://bucket/lake")
    assert lake_uri("") == lake_uri(None) == "s3://bucket/lake"
    assert lake_uri("here") == "here"
