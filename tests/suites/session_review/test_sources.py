"""Sources of sessions: files, folders, what is left out of them, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import SourceError
from suites.session_review.session import load
from suites.session_review.sources.read import read_dataset
from tests.suites.session_review.support import called, detail, said, stage


def write(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def a_detail(name: str = "s-1", calls: int = 1, **changes: Any) -> dict[str, Any]:
    events = [called(n, "search", {"n": n}, "x") for n in range(calls)] + [said(99, ("assistant", "done"))]
    return detail(stage("a", events), session_id=name, **changes)


def test_a_file_holds_one_session_or_a_list(tmp_path: Path) -> None:
    one = read_dataset(write(tmp_path / "one.json", a_detail()))
    assert (one.name, [sample.sample_id for sample in one.samples]) == ("one", ["s-1"])
    several = read_dataset(write(tmp_path / "several.json", [a_detail("a"), {"x": 1}, a_detail("b", status="paused")]))
    assert [sample.sample_id for sample in several.samples] == ["a"]
    assert [(left.where, left.reason) for left in several.skipped] == [
        ("several.json[1]", "not a session"),
        ("several.json[2]: b", "session is not over"),
    ]
    assert [left.payload for left in several.skipped] == ['{"x": 1}', None]


def test_lines_hold_one_session_each(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text(f"{json.dumps(a_detail('a'))}\nnonsense\n{json.dumps(a_detail('b'))}\n", encoding="utf-8")
    dataset = read_dataset(str(path))
    assert [sample.sample_id for sample in dataset.samples] == ["a", "b"]
    assert [left.where for left in dataset.skipped] == ["all.jsonl:2"]


def test_of_two_bodies_of_one_session_the_one_that_tells_more_is_kept(tmp_path: Path) -> None:
    spoken = {"messages": [{"role": "assistant", "content": "done"}]}
    final = {"session_id": "s-1", "status": "completed", "final_analysis": "x", "llm_conversation": spoken}
    write(tmp_path / "1" / "final_analysis.json", final)
    write(tmp_path / "1" / "session_detail.json", a_detail(calls=3))
    write(tmp_path / "2" / "session_detail.json", a_detail(calls=2))
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    dataset = read_dataset(str(tmp_path))
    (sample,) = dataset.samples
    assert len(list(load(sample.input).tool_calls)) == 3
    assert [left.reason for left in dataset.skipped] == ["another body of the same session"] * 2


def test_equal_sessions_are_equal_samples_wherever_they_come_from(tmp_path: Path) -> None:
    first = read_dataset(write(tmp_path / "a" / "x.json", a_detail()))
    second = read_dataset(write(tmp_path / "b" / "x.json", dict(reversed(a_detail().items()))))
    assert first.version == second.version
    other = read_dataset(write(tmp_path / "c" / "x.json", a_detail(final_analysis="It was the network.")))
    assert other.version != first.version


def test_a_session_in_which_nothing_happened_is_left_out(tmp_path: Path) -> None:
    empty = detail(session_id="e", final_analysis=None)
    with pytest.raises(SourceError, match="1 x session in which nothing happened"):
        read_dataset(write(tmp_path / "e.json", empty))
    failed = detail(session_id="f", final_analysis=None, status="failed", error_message="no quota")
    assert len(read_dataset(write(tmp_path / "f.json", failed)).samples) == 1


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.json", b"\xff\xfe", "not UTF-8 text"),
        ("x.json", b"{", "not a JSON object"),
        ("x.json", b"[" * 100_000, "not a JSON object"),
        ("x.json", b'{"stages": ' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
        ("x.json", b"[]", "it is empty"),
        ("x.jsonl", b"", "it is empty"),
        ("x.txt", b"hello", "no known kind"),
    ],
)
def test_what_holds_no_session_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=reason) as refused:
        read_dataset(str(tmp_path / name))
    assert "\n" not in str(refused.value)


def test_a_source_that_is_not_there_is_named() -> None:
    with pytest.raises(SourceError, match="nowhere"):
        read_dataset("nowhere")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="it is empty"):
        read_dataset(str(tmp_path))


def test_a_folder_that_leads_back_to_itself_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "x.json", a_detail())
    (tmp_path / "again").symlink_to(tmp_path)
    assert len(read_dataset(str(tmp_path)).samples) == 1


TRACE_LIST = {"stages": [{"stage_name": "s", "executions": [{"agent_name": "a", "llm_interactions": [{"id": "1"}]}]}]}
TRACED = {"id": "traced", "status": "completed", "alert_data": "disk full", "stages": [{"stage_name": "s"}]}
TRACED_CALL = {"meta": {"id": "1"}, "messages": [{"role": "assistant", "content": "the disk is full"}]}


def write_trace(folder: Path, **files: Any) -> None:
    """A folder of trace files; `files` replace some of them, as text or bytes."""
    whole = {"trace_list": TRACE_LIST, "session": TRACED, "trace_interactions/01_llm": TRACED_CALL} | files
    for name, content in whole.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"session": b"{"}, "not a JSON object"),
        ({"session": b'{"id": "\xff"}'}, "not a JSON object"),
        ({"trace_list": b"[" * 5000}, "not a JSON object"),
        ({"trace_list": TRACE_LIST | {"more": json.loads("[" * 900 + "]" * 900)}}, "nested too deeply"),
        ({"session": TRACED | {"id": None}}, "session without session_id"),
    ],
)
def test_a_broken_trace_is_left_out_and_the_others_are_read(tmp_path: Path, files: dict[str, Any], reason: str) -> None:
    write_trace(tmp_path / "a-good")
    write_trace(tmp_path / "broken", **files)
    dataset = read_dataset(str(tmp_path))
    assert [sample.sample_id for sample in dataset.samples] == ["traced"]
    assert [(left.where, left.reason) for left in dataset.skipped] == [("broken", reason)]


@pytest.mark.parametrize("name", [[1], {"a": 1}, 7, None])
def test_ids_and_names_of_a_trace_may_be_any_json(tmp_path: Path, name: Any) -> None:
    execution = {"agent_name": name, "llm_interactions": [{"id": name}]}
    write_trace(
        tmp_path,
        trace_list={"stages": [{"stage_name": name, "executions": [execution]}]},
        session=TRACED | {"stages": [{"stage_name": name, "executions": [{"agent_name": name, "status": "failed"}]}]},
        **{"trace_interactions/01_llm": TRACED_CALL | {"meta": {"id": name}}},
    )
    (sample,) = read_dataset(str(tmp_path)).samples
    assert "the disk is full" in sample.input
