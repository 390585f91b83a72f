"""`evalake dataset show`: how sources are understood, and what stands in them twice."""

import json
from pathlib import Path

from tests.integration.cli.command import evalake_here


def test_it_tells_form_mapping_counts_and_duplicates(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("question;answer;topic\nWie groß?;1,8;body\nWho?;Me;body\n".encode("latin-1"))
    (tmp_path / "b.jsonl").write_text('{"ask": "who?", "answer": "I"}\n\n[]\n')
    words = ("dataset", "show", "a.csv", "b.jsonl?input=ask")
    done = evalake_here(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in (
        "a.csv: read as columns separated by semicolons, Latin-1",
        "mapping: input = question, target = answer, category = topic",
        "mapping: target = answer, input = ask",
        "categories: body 2",
        "left out: not a JSON object 1",
        "duplicates: 0 within a source, 1 between sources",
    ):
        assert said in done.stdout
    told = json.loads(evalake_here(*words, "--json", folder=tmp_path).stdout)
    assert [each["samples"] for each in told["datasets"]] == [2, 1]
    assert len(told["duplicates"]) == 1


def test_a_table_without_a_plain_input_is_asked_for_its_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("frage,antwort\nWer?,Ich\n")
    done = evalake_here("dataset", "show", "a.csv", folder=tmp_path)
    assert done.returncode == 2
    assert "(frage, antwort): write a.csv?input=COLUMN" in done.stderr
    starter = evalake_here("dataset", "show", "starter", folder=tmp_path)
    assert (starter.returncode, "name one with --suite" in starter.stderr) == (2, True)
