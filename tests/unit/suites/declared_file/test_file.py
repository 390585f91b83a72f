"""A suite in a file, and promptfoo's."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from evalake.contracts.contract import Contract
from evalake.core.errors import SourceError, SuiteError
from evalake.models.request import Reply
from evalake.sdk import Item
from evalake.suites.declared.check import lines_of
from evalake.suites.declared.file import MistakesError, SuiteFile, read_suite_file
from evalake.suites.declared.make import load, scores_of, totals
from evalake.suites.declared.samples import row_of
from evalake.suites.places import Place, manifest, places
from tests.cases import cases_beside

CASES = cases_beside(__file__, "mistakes.json")

# A suite's file: short, in TOML or YAML, with every mistake by line and field; its samples and prompts.

QUIZ = """\
dataset = "quiz.csv"
columns = { target = "answer" }
prompt = "{{ question }} {{ hint }}"
score = "exact"
"""
ROWS = "question,answer,hint\nCapital of France?,Paris,\nCapital of Italy?,Rome,boot\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quiz").mkdir()
    (tmp_path / "quiz" / "quiz.csv").write_text(ROWS)
    (tmp_path / "quiz" / "suite.toml").write_text(QUIZ)
    return tmp_path / "quiz"


def mistakes(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(MistakesError) as raised:
        list(lines_of(file))
    return [each.removeprefix(f"{file}:") for each in raised.value.mistakes]


def test_every_mistake_is_named_by_line_and_field(folder: Path) -> None:
    text = """\
dataset = "quiz.csv"
colour = 1
columns = { target = "answer", foo = "x" }
prompt = '''
reply = "this is no field"
'''
reply = "choyce"
metrics = ["accuracy", "f2"]
[[scorers]]
kind = "exact"
[[scorers]]
kind = "number"
tolerance = "many"
[[scorers]]
kind = "judge"
rubric = "?"
form = { score = "1..5" }
"""
    said = mistakes(folder / "suite.toml", text)
    assert [each.split(": ")[:2] for each in sorted(said, key=lambda each: int(each.split(":")[0]))] == [
        ["2", "colour"],
        ["3", "columns.foo"],
        ["7", "reply.read"],
        ["8", "metrics.1"],
        ["13", "scorers.1.tolerance"],
        ["14", "scorers.2"],
    ]


@pytest.mark.parametrize(("old", "new", "said"), CASES["beside"])  # fmt: skip
def test_a_mistake_beside_the_fields_is_named_once_by_its_field(folder: Path, old: str, new: str, said: str) -> None:
    (folder / "own.py").write_text("def bad(answer, target, row):\n    return 1 / 0\n")
    assert old in QUIZ
    (found,) = mistakes(folder / "suite.toml", QUIZ.replace(old, new))
    assert found.startswith(said.replace("{folder}", str(folder)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("suite.toml", QUIZ.encode("utf-16"), " is not UTF-8 text: save it as UTF-8"),
        ("suite.toml", b"title =\n", ":1: no valid TOML: Invalid value"),
        ("suite.yaml", b"title: a\nscore: exact\ntitle: b\n", ":3: title: it stands in line 1, too"),
        ("suite.yaml", b"columns:\n\ttarget: answer\n", ":2: no valid YAML: "),
        ("suite.yaml", b"- a\n", ": it holds no fields"),
        ("suite.yaml", b"", ": it holds no fields"),
        ("suite.yaml", b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
            b"%c: &%c [%s]\n" % (name, name, b", ".join([b"*%c" % (name - 1)] * 10)) for name in b"bcdefgh"
        ), " has more than 100,000 fields"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_said_with_its_line(folder: Path, name: str, content: bytes, said: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(SuiteError) as raised:
        list(lines_of(folder / name))
    assert str(raised.value).startswith(f"{folder / name}{said}")


def test_a_byte_order_mark_is_no_content(folder: Path) -> None:
    (folder / "suite.toml").write_bytes(b"\xef\xbb\xbf" + QUIZ.encode())
    assert load(folder / "suite.toml").name == "quiz"


def test_the_same_as_yaml_is_the_same_suite(folder: Path) -> None:
    (folder / "suite.yaml").write_text(
        'dataset: quiz.csv\ncolumns: {target: answer}\nprompt: "{{ question }} {{ hint }}"\nscore: exact\n'
    )
    one, other = read_suite_file(folder / "suite.toml"), read_suite_file(folder / "suite.yaml")
    assert one.model_dump() == other.model_dump()
    assert load(folder / "suite.toml").scoring.version == load(folder / "suite.yaml").scoring.version
    assert mistakes(folder / "suite.yaml", "dataset: quiz.csv\nprompt: x\nscore:\n  - kind: exact\n  - kind: nix\n")[
        0
    ].startswith("5: score.1.kind: ")
    (folder / "suite.yaml").write_text("a: [")
    with pytest.raises(SuiteError, match=r"suite.yaml:\d: no valid YAML"):
        read_suite_file(folder / "suite.yaml")


def test_all_columns_reach_the_prompt_and_an_empty_cell_is_nothing(folder: Path) -> None:
    suite = load(folder / "suite.toml")
    samples = suite.data.read("quiz.csv").samples
    asked = [suite.conversation.next_request(Item(each, "openai/m"), [], {}) for each in samples]
    said = [each.messages[-1]["content"] for each in asked if each]
    assert said == ["Capital of France? ", "Capital of Italy? boot"]
    assert suite.name == "quiz"
    assert isinstance(suite.results, Contract)
    assert suite.results.table == "quiz_results"
    assert not suite.is_judged


@pytest.mark.parametrize("mapping", ["target=reply", "answer=reply"])
def test_a_mapping_names_a_field_by_its_name_or_by_the_column_of_the_file(folder: Path, mapping: str) -> None:
    other = folder / "other.csv"
    other.write_text(ROWS.replace("answer", "reply"))
    dataset = load(folder / "suite.toml").data.read(f"{other}?{mapping}")
    assert [sample.target for sample in dataset.samples] == ['"Paris"', '"Rome"']


def test_a_sample_that_no_prompt_can_be_written_about_is_left_out_and_counted(folder: Path) -> None:
    (folder / "quiz.jsonl").write_text(
        '{"question": "?", "answer": "1", "hint": ""}\n{"question": "?", "answer": "2"}\n'
    )
    dataset = load(folder / "suite.toml").data.read(str(folder / "quiz.jsonl"))
    assert len(dataset.samples) == 1
    assert "'hint' is undefined" in dataset.skipped[0].reason
    (folder / "suite.toml").write_text(QUIZ.replace("hint", "nothing"))
    with pytest.raises(SourceError, match=r"2 x its prompt cannot be written.*'nothing' is undefined"):
        load(folder / "suite.toml").data.read("quiz.csv")


@pytest.mark.parametrize(
    "template",
    ["{{ question.__class__.__mro__ }}", "{{ ''.__class__.__base__.__subclasses__() }}", "{% include '/etc/passwd' %}"],
)
def test_a_template_reaches_nothing_but_the_columns(folder: Path, template: str) -> None:
    (folder / "suite.toml").write_text(QUIZ.replace("{{ question }}", template))
    with pytest.raises(SourceError, match="its prompt cannot be written"):
        load(folder / "suite.toml").data.read("quiz.csv")


def test_text_of_a_dataset_is_never_a_template(folder: Path) -> None:
    (folder / "quiz.csv").write_text("question,answer,hint\n{{ 7 * 7 }},x,{% for %}\n")
    suite = load(folder / "suite.toml")
    request = suite.conversation.next_request(Item(suite.data.read("quiz.csv").samples[0], "m"), [], {})
    assert request is not None
    assert request.messages[0]["content"] == "{{ 7 * 7 }} {% for %}"


def test_worked_examples_come_first_and_the_sample_itself_is_none_of_them(folder: Path) -> None:
    prompt = 'prompt = { user = "{{ question }}", examples = "quiz.csv", answer = "It is {{ answer }}." }'
    (folder / "suite.toml").write_text(QUIZ.replace('prompt = "{{ question }} {{ hint }}"', prompt))
    suite = load(folder / "suite.toml")
    request = suite.conversation.next_request(Item(suite.data.read("quiz.csv").samples[0], "m"), [], {})
    assert request is not None
    assert [(each["role"], each["content"]) for each in request.messages] == [
        ("user", "Capital of Italy?"),
        ("assistant", "It is Rome."),
        ("user", "Capital of France?"),
    ]


def test_files_outside_of_the_folder_are_not_read(folder: Path) -> None:
    (folder.parent / "secret.md").write_text("x")
    (folder / "suite.toml").write_text(QUIZ.replace('"{{ question }} {{ hint }}"', '{ file = "../secret.md" }'))
    said = mistakes(folder / "suite.toml", (folder / "suite.toml").read_text())
    assert said[0].startswith("3: prompt.file: ")
    assert "outside of the folder" in said[0]


def test_a_pattern_of_no_table_is_the_suites_own_fault(folder: Path) -> None:
    (folder / "suite.toml").write_text(QUIZ.replace('dataset = "', 'dataset = "none/*'))
    with pytest.raises(SuiteError, match=r"dataset: .* holds no table"):
        load(folder / "suite.toml")
    assert "mistakes" in manifest(Place("quiz", "", "", file=folder / "suite.toml")).asks


def test_a_check_shows_a_prompt_and_how_the_first_sample_is_scored(folder: Path) -> None:
    shown = list(lines_of(folder / "suite.toml"))
    assert "[user] Capital of France? " in shown
    assert "exact: 1, right" in shown
    assert mistakes(folder / "suite.toml", QUIZ + 'slices = ["colour"]\n')[0].startswith("5: slices: no sample has")


def test_a_slice_is_a_column_of_the_dataset_also_where_results_have_one_of_that_name(folder: Path) -> None:
    (folder / "suite.toml").write_text(f'{QUIZ}slices = ["answer", "model"]\n')
    suite = load(folder / "suite.toml")
    row = {"target": "Paris", "answer": "Rome", **dict.fromkeys(("scores", "passed", "columns"), "{}")}
    assert suite.metrics.join_inputs is not None
    assert suite.metrics.join_inputs(pl.LazyFrame([row]), {}).collect()["answer"].item() == "Paris"
    (folder / "quiz.csv").write_text(
        ROWS.replace("hint\n", "hint,model\n").replace(",\n", ",,x\n").replace("boot", "boot,y")
    )
    with pytest.raises(SourceError, match="slices names 'model', which results have, too"):
        suite.data.read(str(folder / "quiz.csv"))


# A promptfoo configuration runs as a suite: its assertions give promptfoo's verdicts, and what is unknown is said.

SCHEMA = {"type": "object", "required": ["city"]}


def config(folder: Path, **given: Any) -> SuiteFile:
    whole = {"providers": ["openai:chat:gpt-x"], "prompts": ["Capital of {{country}}?"], **given}
    (folder / "promptfooconfig.yaml").write_text(yaml.safe_dump(whole))
    return read_suite_file(folder / "promptfooconfig.yaml")


def verdict(file: SuiteFile, *replies: str, sample: int = 0) -> dict[str, Any]:
    suite = load(file.path)
    row = row_of(suite.data.read(suite.data.starter[0]).samples[sample], file)
    return totals(file, scores_of(file, row, [Reply(each) for each in replies]))


@pytest.mark.parametrize(
    ("assertion", "right", "wrong"),
    [
        *CASES["assertions"],
        ({"type": "is-json", "value": SCHEMA}, '{"city": 1}', '{"town": 1}'),
        ({"type": "contains-json", "value": SCHEMA}, 'So { not this {"city": 1}', "no {} here"),
        ({"type": "contains-json", "value": SCHEMA}, "So {'city': 1,}", "{'town': 1}"),
    ],
)
def test_an_assertion_holds_where_promptfoo_says_it_holds(
    assertion: dict[str, Any], right: str, wrong: str, tmp_path: Path
) -> None:
    (tmp_path / "check.py").write_text(
        "def get_assert(output, context):\n    return output == context['vars']['capital']\n"
        "def graded(output, context):\n    good = output == 'Paris'\n"
        "    return {'pass': good, 'score': 0.5, 'reason': 'half'}\n"
    )
    file = config(tmp_path, tests=[{"vars": {"country": "France", "capital": "Paris"}, "assert": [assertion]}])
    assert (file.notes, verdict(file, right)["correct"], verdict(file, wrong)["correct"]) == ((), True, False)


def test_what_is_not_understood_is_named_by_line_and_gives_no_verdict(tmp_path: Path) -> None:
    tests = [
        {"vars": {"country": "France"}, "assert": [{"type": "contains", "value": "Paris"}, {"type": "moderation"}]},
        {"vars": {"country": "Peru"}, "options": {"transform": "x"}, "assert": [{"type": "contains", "value": "Lima"}]},
        {"vars": {"country": "Chile"}},
        {
            "vars": {"country": "Oman"},
            "assert": [{"type": "regex", "value": "(?i)x"}, {"type": "is-json", "value": "{"}],
        },
        {"vars": {"country": "Mali"}, "assert": [{"type": "contains", "value": "x", "transform": "f()"}]},
    ]
    providers = ["exec:./run.sh", {"id": "openai:gpt-y", "config": {"apiKey": "sk-secret", "temperature": 0}}]
    (tmp_path / "bad.yaml").write_text("a: [")
    tests += ["bad.yaml", "absent.csv"]
    prompts = ["{{country}} {{absent}}", '[{"role": "user", "content": 5}]']
    file = config(tmp_path, providers=providers, prompts=prompts, tests=tests, outputPath="x.json")
    said = "\n".join(file.notes)
    for words in (
        *("outputPath", "exec:./run.sh", "moderation", "options.transform", "tests.2: no assert", "apiKey", "(?"),
        *("is-json is not", "assert.0.transform", "bad.yaml is not", "absent.csv", "the var absent", "not plain texts"),
    ):
        assert words in said, words
    assert all(note.startswith(f"{file.path}:") for note in file.notes)
    assert "sk-secret" not in said
    assert (file.models, file.parameters) == (("openai/gpt-y",), {"temperature": 0})
    assert verdict(file, "Paris")["correct"] is None
    assert verdict(file, "Rome")["correct"] is False
    assert [verdict(file, "Rome", sample=number)["correct"] for number in (1, 2, 3)] == [None, None, None]
    assert [line for line in lines_of(file.path) if line in file.notes] == list(file.notes)


def test_a_configuration_of_odd_values_is_refused_with_its_lines(tmp_path: Path) -> None:
    tests = [5, {"vars": 5, "assert": 5, "options": 5, "metadata": [1], "threshold": {"a": 1}}, {"assert": [7, None]}]
    with pytest.raises(SuiteError, match=r"yaml:\d+: providers.0.*tests.0: not understood"):
        config(tmp_path, providers=[5, {}, [1]], prompts={"a": {"b": 1}}, tests=tests[:1], defaultTest=[1])
    assert config(tmp_path, tests=tests).notes


@pytest.mark.parametrize(("cell", "right", "wrong"), CASES["cells"])
def test_a_cell_of_a_table_is_an_assertion_or_the_answer(cell: str, right: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "tests.csv").write_text(f'country,__expected,__metadata:topic\nFrance,"{cell}",towns\n')
    file = config(tmp_path, tests="file://tests.csv")
    assert (verdict(file, right)["correct"], verdict(file, wrong)["correct"]) == (True, False)
    assert (file.notes, file.samples[0]["topic"]) == ((), "towns")


def test_prompts_are_chats_and_tests_stand_in_files(tmp_path: Path) -> None:
    test = {"vars": {"country": "{{ big }}", "big": "Bra\u2028zil\n"}, "assert": [{"type": "equals", "value": "x"}]}
    (tmp_path / "chat.yaml").write_text(
        "- role: system\n  content: Be brief.\n- role: user\n  content: '{{country}}?'\n"
    )
    turns = [("user", "Peru?"), ("assistant", "Lima"), ("user", "{{country}}?")]
    (tmp_path / "chat.json").write_text(json.dumps([{"role": role, "content": text} for role, text in turns]))
    (tmp_path / "tests.jsonl").write_text(json.dumps(test, ensure_ascii=False))
    (tmp_path / "vars.yaml").write_text("country: Peru")
    tests = ["tests.jsonl", {"vars": "vars.yaml", "assert": test["assert"], "threshold": 0.5}]
    file = config(tmp_path, prompts=["file://chat.yaml", {"id": "chat.json", "label": "few shot"}], tests=tests)
    suite = load(file.path)
    first, second = suite.data.read(suite.data.starter[0]).samples
    asked = [suite.conversation.next_request(Item(first, "m", None, name, 0), [], {}) for name in suite.prompts.types]
    assert [[m["content"] for m in request.messages] for request in asked if request] == [
        ["Be brief.", "Bra\u2028zil?"],
        ["Peru?", "Lima", "Bra\u2028zil?"],
    ]
    assert (suite.prompts.types, row_of(second, file)["country"]) == (("prompt_1", "few_shot"), "Peru")
    assert verdict(file, "x", sample=1)["correct"] is None  # one threshold for all, or none


def test_defaults_lists_tables_and_thresholds_are_promptfoos(tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("country,__expected\nItaly,Rome\nSpain,icontains:madrid\n")
    (tmp_path / "p.txt").write_text("One of {{country}}\n---\nTwo of {{country}}\n")
    usual = {"assert": [{"type": "javascript", "value": "output.length < 8"}], "threshold": 0.5}
    tests = [{"vars": {"country": ["France", "Peru"]}, "assert": [{"type": "icontains", "value": "a", "weight": 3}]}]
    file = config(tmp_path, prompts=["file://p.txt"], defaultTest=usual, tests=[*tests, "file://more.csv"])
    suite = load(file.path)
    samples = suite.data.read(suite.data.starter[0]).samples
    assert [row_of(each, file)["country"] for each in samples] == ["France", "Peru", "Italy", "Spain"]
    assert (suite.prompts.types, suite.prompts.usual) == (("prompt_1", "prompt_2"), 2)
    assert verdict(file, "Santiago") == {"correct": True, "score": 0.75}
    assert verdict(file, "Rome?", sample=2) == {"correct": True, "score": 0.5}
    assert verdict(file, "Madrid, of course", sample=3)["score"] == 0.5


def test_it_is_found_by_the_name_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "My quiz"
    folder.mkdir()
    file = config(folder, tests=[{"vars": {"country": "F"}, "assert": [{"type": "equals", "value": "x"}]}])
    monkeypatch.setenv("EVALAKE_SUITE_FILES", str(file.path))
    assert (file.called, places()["my_quiz"].file) == ("my_quiz", file.path)


@pytest.mark.real_data
def test_a_real_configuration_gives_the_verdicts_that_promptfoo_gave(real_data: Path) -> None:
    peers = real_data / "peers"
    file = read_suite_file(peers / "promptfoo_capitals.yaml")
    results = json.loads((peers / "promptfoo_capitals_results.json").read_text())["results"]["results"]
    for row in results:
        ours = verdict(file, row["response"]["output"], "5", sample=row["testIdx"])
        assert bool(ours["correct"]) == row["success"]
        assert ours["score"] in (row["score"], None)  # None: the grader's reply is no judgement
    assert (len(results), sum(row["success"] for row in results)) == (20, 8)
