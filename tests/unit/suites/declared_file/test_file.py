"""A suite's file: short, in TOML or YAML, with every mistake by line and field; its samples and prompts."""

from pathlib import Path

import pytest

from evalake.contracts.contract import Contract
from evalake.core.errors import SourceError, SuiteError
from evalake.sdk import Item
from evalake.suites.declared.check import lines_of
from evalake.suites.declared.file import MistakesError, read_suite_file
from evalake.suites.declared.make import load

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


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("dataset", 'name = "command_guard"\ndataset', "1: name: there is a suite command_guard already"),
        ('{ target = "answer" }', '{ target = "anser" }', "2: columns.target: {folder}/quiz.csv has no column 'anser'"),
        ("question", "quesion", "3: prompt: the template cannot be filled: 'quesion' is undefined"),
        ("{{ question }}", "{{ question", "3: prompt.user: the template is not valid Jinja"),
        ('"{{ question }} {{ hint }}"', '{ user = "?", examples = "no.csv" }', "3: prompt.examples: there is no"),
        ('score = "exact"', 'score = "exakt"', "4: score.kind: Input should be 'exact'"),
        ('score = "exact"', 'score = "number"', "4: score.kind: the scorer number needs a number"),
        ('score = "exact"', "score = 5", "4: score: it holds no fields"),
        ('"exact"', '{ kind = "python", function = "own.py:bad" }', "4: score.function: it failed at"),
        ('"exact"', '{ kind = "exact", where = { hint = "x" } }', "4: score.where: no sample is scored by it"),
        ('"exact"', '{ kind = "exact", expected = "{{ no }}" }', "4: score.expected: the template cannot be filled"),
        ('"exact"', '{ kind = "judge", rubric = "{{ no }}", form = { ok = "yes/no" } }', "4: score.rubric: the"),
        ('"exact"', '{ kind = "judge", rubric = "?", form = { ok = "1-5" } }', "4: score.form: '1-5' is no kind"),
    ],
)  # fmt: skip
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


def test_a_check_shows_a_prompt_and_how_the_first_sample_is_scored(folder: Path) -> None:
    shown = list(lines_of(folder / "suite.toml"))
    assert "[user] Capital of France? " in shown
    assert "exact: 1, right" in shown
    assert mistakes(folder / "suite.toml", QUIZ + 'slices = ["colour"]\n')[0].startswith("5: slices: no sample has")
