"""`evalake fit-weights`: a ranking of people's gives weights, and one that cannot is named."""

import json
import os

import pytest

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_weights_are_fitted_to_a_ranking_and_their_worth_is_said(audited: Imported) -> None:
    (audited.folder / "ranking.csv").write_text("model,rank\ngood,1\nfair,2\npoor,3\n")
    fit = json.loads(evalake_here("fit-weights", "ranking.csv", "--json", folder=audited.folder).stdout)
    assert (fit["agreeing"], fit["pairs"]) == (3, 3)
    assert sum(fit["weights"].values()) == pytest.approx(1.0)
    assert fit["support"]


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        ("model,rank\nunknown,1\ngood,2\nfair,3\n", 2, "unknown"),
        ("name,place\ngood,1\n", 2, "columns"),
        ("", 2, "empty"),
        ("model,rank\ngood,1\nfair,nan\n", 2, "gives fair the rank nan"),
        ("model,rank\ngood,1\nfair,2\ngood,3\n", 2, "has a model twice"),
        (f"model,rank\n{'x' * 17_000_000},1\n", 2, "must be CSV"),
    ],
)
def test_a_bad_ranking_is_named(audited: Imported, content: str, code: int, named: str) -> None:
    (audited.folder / "bad.csv").write_text(content)
    done = evalake_here("fit-weights", "bad.csv", folder=audited.folder)
    assert done.returncode == code
    assert named in done.stderr


def test_a_sheet_that_is_no_regular_file_is_not_waited_for(audited: Imported) -> None:
    if not (audited.folder / "pipe.csv").exists():
        os.mkfifo(audited.folder / "pipe.csv")
    done = evalake_here("fit-weights", "pipe.csv", folder=audited.folder)
    assert done.returncode == 2
    assert "pipe.csv is not read: no regular file" in done.stderr
