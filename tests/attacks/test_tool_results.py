"""Results of other tools whose parts are anything: each is read, or refused in a sentence."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import EvalakeError
from evalake.suites.declared.formats.detect import read_tool_results
from evalake.suites.declared.imported import merge, recorded
from tests.unit.suites.formats.logs import (
    header,
    lm_eval_line,
    lm_eval_results,
    promptfoo_results,
    promptfoo_row,
    sample,
)

ODD: tuple[Any, ...] = (
    *(None, [], {}, "", 0, -1, 1e308, float("nan"), 10**400, True),
    *("nul \x00", "half a \ud800", [[1]], {"a": {"b": [1]}}, "1e999"),
)


def _paths(node: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, part in parts:
        yield (*before, name)
        yield from _paths(part, (*before, name))


def _changed(document: Any) -> Iterator[Any]:
    for *to, last in _paths(document):
        for odd in ODD:
            changed = copy.deepcopy(document)
            place = changed
            for name in to:
                place = place[name]
            place[last] = odd
            yield changed


def _is_read(file: Path) -> bool:
    """Read a file; false where it is refused. Any other error fails the test."""
    try:
        answers, _ = merge(read_tool_results([file]))
        return bool(list(recorded("hostile", answers)))
    except EvalakeError:
        return False


@pytest.mark.parametrize(
    "document",
    [{**header(), "samples": [sample(1)]}, promptfoo_results([promptfoo_row(0, 0, True)], successes=1)],
    ids=["inspect", "promptfoo"],
)
def test_a_document_with_an_odd_part_is_read_or_refused(tmp_path: Path, document: Any) -> None:
    outcomes = set()
    for changed in _changed(document):
        (tmp_path / "x.json").write_text(json.dumps(changed))
        outcomes.add(_is_read(tmp_path / "x.json"))
    assert outcomes == {True, False}


def test_samples_of_lm_eval_with_an_odd_part_are_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "results_sums.json").write_text(json.dumps(lm_eval_results()))
    outcomes = set()
    for changed in _changed(json.loads(lm_eval_line(0, 1.0))):
        (tmp_path / "samples_sums.jsonl").write_text(json.dumps(changed))
        outcomes.add(_is_read(tmp_path / "samples_sums.jsonl"))
    assert outcomes == {True, False}


def test_results_of_lm_eval_with_an_odd_part_are_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "samples_sums.jsonl").write_text(lm_eval_line(0, 1.0))
    outcomes = set()
    for changed in _changed(lm_eval_results(exact_match__none=1.0)):
        (tmp_path / "results_sums.json").write_text(json.dumps(changed))
        outcomes.add(_is_read(tmp_path / "samples_sums.jsonl"))
    assert outcomes == {True, False}


def test_a_document_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    text = json.dumps({**header(), "samples": [sample(1, store="DEEP")]})
    (tmp_path / "x.json").write_text(text.replace('"DEEP"', "[" * 900 + "]" * 900))
    with pytest.raises(EvalakeError, match=r"x\.json is not as its tool writes it"):
        read_tool_results([tmp_path / "x.json"])
