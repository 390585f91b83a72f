"""A ranking by people: what is no ranking is named, and never fitted."""

from pathlib import Path

import pytest

from evalake.core.errors import SourceError
from evalake.tasks.calibrate import read_ranking


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("good,1\nfair,nan\n", "gives fair the rank nan"),
        ("good,1\nfair,inf\n", "gives fair the rank inf"),
        ("good,1\nfair,2\ngood,3\n", "has a model twice"),
        ("x" * 17_000_000 + ",1\n", "must be CSV"),
        ("", "is empty"),
    ],
)
def test_what_is_no_ranking_is_named(tmp_path: Path, lines: str, named: str) -> None:
    file = tmp_path / "ranking.csv"
    file.write_text("model,rank\n" + lines)
    with pytest.raises(SourceError, match=named):
        read_ranking(file)
