"""Sources of sessions: files, their material, and what is left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.suites.session_review.session import dump, load
from evalake.suites.session_review.sources import require_whole
from evalake.suites.session_review.sources.generic import RefusedError, microseconds, read_generic, result_text
from evalake.suites.session_review.sources.read import read_body, read_dataset, watermark
from evalake.suites.session_review.sources.tarsy import read_detail
from tests.cases import cases_beside
from tests.unit.suites.session_review.support import called, detail, said, stage

CASES = cases_beside(__file__, "read.json")

# Sources of sessions: files, folders, what is left out of them, and what is refused.


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
    write(tmp_path / "2" / "lesser.json", a_detail(calls=2))
    for name in ("notes.txt", "1/x.jsonl", "2/x.jsonl"):  # refused lines of one file name and content are two
        (tmp_path / name).write_text("nothing", encoding="utf-8")
    dataset = read_dataset(str(tmp_path))
    (sample,) = dataset.samples
    assert len(list(load(sample.input).tool_calls)) == 3
    assert [(left.where, left.reason) for left in dataset.skipped] == [
        ("1/final_analysis.json", "another body of the same session"),
        ("1/x.jsonl:1", "not a JSON object"),
        ("2/lesser.json", "another body of the same session"),
        ("2/x.jsonl:1", "not a JSON object"),
    ]


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
    assert len(read_dataset(write(tmp_path / "f.json", failed) + "?accept_empty=1").samples) == 1


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


def test_an_empty_folder_and_a_source_that_is_not_there_are_refused(tmp_path: Path) -> None:
    for source, reason in ((str(tmp_path), "it is empty"), ("nowhere", "nowhere")):
        with pytest.raises(SourceError, match=reason):
            read_dataset(source)


def test_a_folder_that_leads_back_to_itself_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "x.json", a_detail())
    (tmp_path / "again").symlink_to(tmp_path)
    assert len(read_dataset(str(tmp_path)).samples) == 1


def test_hostile_bodies_are_refused_or_read_but_never_break() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    body: Any
    for body in (deep, {"stages": [deep]}, {"stages": deep}, {"messages": [{}], "alert": deep}, [], None, 7, {}):
        with pytest.raises(RefusedError):
            read_body(body)


@pytest.mark.real_data
def test_a_whole_folder_of_real_exports_is_read_with_each_session_once(real_data: Path) -> None:
    dataset = read_dataset(str(real_data / "tarsy"))
    assert len(dataset.samples) == len({sample.sample_id for sample in dataset.samples}) == 6
    sessions = [load(sample.input) for sample in dataset.samples]
    assert sum(len(list(session.tool_calls)) for session in sessions) == 14 + 7
    assert not any("scor" in getattr(each, "purpose", "") for session in sessions for each in session.interactions)


@pytest.mark.parametrize(
    ("rest", "named"),
    [
        ("reader:s3cret@127.0.0.1:9/tarsy?sslmode=require", "takes no parameter 'sslmode'"),
        ("reader@127.0.0.1:9/tarsy?options=-c+x%3Ds3cret", "takes no parameter 'options'"),
        (
            "reader:s3cret@127.0.0.1:9/tarsy?application_name=a&application_name=b",
            "takes no parameter 'application_name'",
        ),
        (":s3cret@127.0.0.1:9/tarsy", "names no user"),
        (f"reader:s3cret@{'a' * 70}.example/tarsy", "cannot be read as a TARSy database"),
        ("reader:s3cret@127.0.0.1:99999999999/tarsy", "cannot be read as a TARSy database"),
    ],
)
def test_a_database_url_that_no_driver_takes_is_refused_in_one_line_without_its_password(rest: str, named: str) -> None:
    for read in (read_dataset, watermark):
        with pytest.raises(SourceError, match=named) as refused:
            read(f"postgresql://{rest}")
        assert "s3cret" not in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_source_that_is_no_database_of_postgres_is_not_connected_to(tmp_path: Path) -> None:
    for source in (f"sqlite:///{tmp_path}/new.db", "mysql://reader@127.0.0.1:9/tarsy"):
        with pytest.raises(SourceError, match="is no postgresql:// URL"):
            watermark(source)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source", ["mysql://h/tarsy", "sqlite:////tmp/x.db", "://", "postgresql://h:port/x"])
def test_other_urls_are_no_source(source: str) -> None:
    with pytest.raises(SourceError):
        read_dataset(source)


@pytest.mark.parametrize("named", ["session_id", "id"])
def test_a_session_without_interactions_is_left_out_unless_the_source_accepts_it(tmp_path: Path, named: str) -> None:
    executions = [{"execution_id": "e", "agent_name": "a", "status": "completed"}]
    stages = [{"id": "s", "stage_name": "look", "stage_type": "investigation", "executions": executions}]
    empty = {named: "bare", "status": "completed", "alert_data": "x", "final_analysis": "y", "stages": stages}
    source = write(tmp_path / "empty.json", empty)
    with pytest.raises(SourceError, match=r"\(1 x session without any interaction\); `\?accept_empty=1`"):
        read_dataset(source)
    assert [sample.sample_id for sample in read_dataset(f"{source}?accept_empty=1").samples] == ["bare"]
    assert watermark(f"{source}?accept_empty=1") == watermark(source)
    write(tmp_path / "full.json", a_detail())
    dataset = read_dataset(str(tmp_path))
    assert [sample.sample_id for sample in dataset.samples] == ["s-1"]
    assert [(left.reason, left.payload) for left in dataset.skipped] == [("session without any interaction", "bare")]
    with pytest.raises(SourceError, match="takes no parameter 'empty=1'"):
        read_dataset(f"{source}?empty=1")


def test_a_completed_session_with_calls_without_result_is_left_out(tmp_path: Path) -> None:
    call = {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "1", "name": "df"}]}
    ended, empty = {"role": "assistant", "content": "Done."}, {"role": "tool", "tool_call_id": "1", "content": ""}
    further = {"role": "assistant", "content": "Again.", "tool_calls": [{"id": "2", "name": "df"}]}
    bodies = {"dropped": [call, ended], "nothing came": [call, empty, ended], "last": [call, empty, further]}
    bodies["alone"] = [call]
    alike = [{"session_id": name, "alert": "x", "messages": messages} for name, messages in bodies.items()]
    source = write(tmp_path / "a.json", [*alike, {**alike[0], "session_id": "cut", "status": "timed_out"}])
    dataset = read_dataset(source)
    assert {sample.sample_id for sample in dataset.samples} == {"nothing came", "last", "cut"}
    assert [left.reason for left in dataset.skipped] == ["1 of 1 tool calls have no result"] * 2
    assert len(read_dataset(f"{source}?accept_empty=1").samples) == 5


def test_a_body_of_no_known_form_is_refused_with_the_forms_that_are_read(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = [{"sessions": []}, {"stages": [], "session_interactions": []}, {"conversation": []}]
    for body in bodies:
        with pytest.raises(SourceError, match=r"not a session\); forms that are read: .*trace_list.json.*`messages`"):
            read_dataset(write(tmp_path / "x.json", body))


# Values of exports become what a session can hold: storable text, times, states; what cannot is refused by name.


@pytest.mark.parametrize("stated", ["completed", "failed", "cancelled", "timed_out", "TIMED-OUT", "canceled"])
def test_sessions_that_are_over_are_read(stated: str) -> None:
    assert read_detail(detail(stage("a"), status=stated)).status in ("completed", "failed", "cancelled", "timed_out")


@pytest.mark.parametrize(("changes", "reason", "by_design"), CASES["refused"])
def test_what_is_no_session_that_is_over_is_refused(changes: dict[str, Any], reason: str, by_design: bool) -> None:
    with pytest.raises(RefusedError, match=reason) as refused:
        read_detail({**detail(stage("a")), **changes})
    assert refused.value.by_design is by_design


def test_text_that_no_table_can_hold_is_mended() -> None:
    body = json.loads(r'{"a": "x\u0000y\ud800z"}')
    session = read_detail(detail(stage("a", [called(1, "search", body, {"result": body["a"]})])))
    (call,) = session.tool_calls
    assert call.result == "x\ufffdy?z"
    assert load(dump(session)) == session


@pytest.mark.parametrize(("value", "read"), CASES["results"])
def test_a_result_is_what_the_agent_read(value: Any, read: str | None) -> None:
    assert result_text(value) == read


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (5, 5),
        (5.9, 5),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T01:00:01+01:00", 1_000_000),
        ("1970-01-01T00:00:01", 1_000_000),
        (-1, None),
        (2**62, None),
        (float("nan"), None),
        (True, None),
        ("yesterday", None),
        ("0001-01-01", None),
        (None, None),
    ],
)
def test_a_time_is_in_microseconds_of_utc(value: Any, read: int | None) -> None:
    assert microseconds(value) == read


# What a body holds is counted against what was read: a session that lost something says how much.


def counted(**changes: Any) -> dict[str, Any]:
    events = [called(1, "df", {"path": "/"}, "99 %"), called(2, "du", {}, {"content": "8 G"})]
    return detail(stage("disk", [*events, said(3, ("user", "go on"), ("assistant", "It is full."))]), **changes)


def generic(*messages: Any, **changes: Any) -> dict[str, Any]:
    return {"session_id": "g", "alert": "disk full", "messages": list(messages), **changes}


SPOKEN = {"role": "assistant", "content": "I look."}


def test_a_body_that_was_read_whole_passes() -> None:
    require_whole(counted(), read := read_detail(counted()))
    assert [each.result for each in read.tool_calls] == ["99 %", "8 G"]
    call = {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "1", "name": "df"}]}
    for content, error in (("99 %", None), ("", None), ([{"type": "text", "text": ""}], None), (None, "denied")):
        body = generic(call, {"role": "tool", "tool_call_id": "1", "content": content, "error": error})
        require_whole(body, whole := read_generic(body))
        assert len(list(whole.tool_calls)) == 1


def test_calls_in_lists_that_no_reader_knows_are_told_with_their_number() -> None:
    more = [called(7, "ls", {}, "core.1"), called(8, "lsof", {}, None)]
    whole = counted()
    whole["stages"][0]["later_calls"] = more
    with pytest.raises(RefusedError, match=r"^unread: 2 of 4 tool calls and 1 of 3 tool results$"):
        read_body(whole)


def test_what_was_left_out_on_purpose_is_not_lost() -> None:
    chat = stage("c", [called(7, "ls", {}, "core.1"), said(8, ("assistant", "Hello"))], chat_id="c-1")
    scored = stage("s", [said(9, ("assistant", "Total: 3"))], stage_type="scoring")
    body = counted(session_level_interactions=[said(10, ("assistant", "In short"))])
    body["stages"] += [chat, scored]
    assert len(list(read_body(body).tool_calls)) == 2


@pytest.mark.parametrize(("more", "reason"), CASES["unread"])
def test_forms_of_messages_that_are_not_known_are_told(more: list[Any], reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        read_body(generic(SPOKEN, *more))


def test_what_others_wrote_is_no_part_of_the_session() -> None:
    looks = {"role": "assistant", "content": "look-alike", "tool_calls": [{"id": "9", "name": "x"}]}
    body = counted(alert_data={"messages": [looks]})
    body["stages"][0]["chronological_interactions"].append(called(5, "cat", {"a": [looks]}, {"b": [looks]}))
    assert len(list(read_body(body).tool_calls)) == 3
