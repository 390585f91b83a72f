"""A suite's file: what `suite.toml` or `suite.yaml` may say, read with every mistake named by line and field."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from evalake.core.configuration import SUITE_SUFFIXES
from evalake.core.errors import SuiteError
from evalake.core.files import MEGABYTE, FileRefusedError, read_file

FILES = tuple(f"suite{suffix}" for suffix in SUITE_SUFFIXES)
"""The names of a suite's file in its folder."""

NAME = r"^[a-z][a-z0-9_]{0,59}$"
FIELDS = ("sample_id", "input", "target", "label", "category", "severity", "difficulty", "cluster")
"""The fields of a sample that a column of the dataset can fill."""

READERS = ("text", "last_line", "json", "regex", "choice", "number")
METRIC = re.compile(r"accuracy|mean_score|unreadable_rate|(?:score|accuracy)_[a-z][a-z0-9_]*|pass[@^][1-9][0-9]?")
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

Name = Annotated[str, Field(pattern=NAME)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MistakesError(SuiteError):
    """A suite's file says what cannot be; `mistakes` names each with its line and field."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _a_field(name: str) -> str:
    if name not in FIELDS:
        raise ValueError(f"a sample has no field {name!r}; its fields are {', '.join(FIELDS)}")
    return name


def _a_metric(name: str) -> str:
    if not METRIC.fullmatch(name):
        raise ValueError(
            f"{name!r} is no metric: there are accuracy, mean_score, unreadable_rate, score_SCORER, accuracy_SCORER, "
            "pass@K and pass^K"
        )
    return name


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
FieldName = Annotated[str, AfterValidator(_a_field)]
MetricName = Annotated[str, AfterValidator(_a_metric)]


class Prompt(_Part):
    """How a model is asked: Jinja over the columns of a sample, inline or in a file, with worked examples."""

    user: str | None = None
    system: str | None = None
    file: str | None = None  # holds the user's part
    examples: str | None = None  # a table with the columns of the dataset
    shots: Annotated[int, Field(ge=1)] | None = None  # how many of them; None: all
    answer: str = "{{ target }}"  # the reply of an example

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.user is None) == (self.file is None):
            raise ValueError("give either user, the text, or file, its file")
        if self.shots is not None and self.examples is None:
            raise ValueError("shots counts examples: name their file in examples")
        return self


class Reply(_Part):
    """How an answer is read from a reply."""

    read: Literal["text", "last_line", "json", "regex", "choice", "number"] = "text"
    pattern: str | None = None  # of regex; its first group, if it has one, is the answer
    form: dict[str, str] = Field(default_factory=dict)  # of json: field -> what it holds
    field: str | None = None  # of json: the field that is the answer; None: the whole object
    choices: Texts = LETTERS[:10]  # of choice

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.pattern is not None) != (self.read == "regex"):
            raise ValueError('pattern goes with read = "regex", and only with it')
        if (self.form or self.field) and self.read != "json":
            raise ValueError('form and field go with read = "json"')
        if self.pattern is not None:
            _require_pattern(self.pattern)
        for kind in self.form.values():
            Kind.of(kind)
        return self


class Kind(_Part):
    """What a field of a form holds: `text`, `yes/no`, a scale (`1..5`) or one of some words (`good|fair|bad`)."""

    words: tuple[str, ...] = ()  # of a choice, the best first
    low: float | None = None
    high: float | None = None
    whole: bool = False
    is_text: bool = False

    @classmethod
    def of(cls, written: str) -> "Kind":
        """Read it as it is written. Raises ValueError where it is none of these."""
        if written == "text":
            return cls(is_text=True)
        if written == "yes/no":
            return cls(words=("yes", "no"))
        if scale := re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*\.\.\s*(-?\d+(?:\.\d+)?)\s*", written):
            low, high = float(scale[1]), float(scale[2])
            if low < high:
                return cls(low=low, high=high, whole="." not in scale[1] + scale[2])
        elif "|" in written and all(words := [word.strip() for word in written.split("|")]):
            return cls(words=tuple(words))
        raise ValueError(f'{written!r} is no kind of field: write "text", "yes/no", a scale "1..5", or words "a|b"')

    @property
    def told(self) -> str:
        """The kind as a judge is told it."""
        if self.is_text:
            return "a text"
        if self.words:
            return "one of the words " + ", ".join(self.words)
        return f"a {'whole ' if self.whole else ''}number from {self.low:g} to {self.high:g}"

    def value(self, given: Any) -> Any:
        """Read what a form holds, as this kind; None where it is no value of it."""
        if self.is_text:
            return given if isinstance(given, str) else None
        if self.words:
            word = {True: "yes", False: "no"}.get(given, given) if isinstance(given, bool) else given
            return next((each for each in self.words if str(word).strip().casefold() == each.casefold()), None)
        try:
            number = float(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else None
        except ValueError:
            return None
        if number is None or not (self.low or 0) <= number <= (self.high or 0) or (self.whole and number % 1):
            return None
        return number

    def share(self, value: Any) -> float | None:
        """Place a value between the worst, 0, and the best, 1."""
        if value is None or self.is_text:
            return None
        if self.words:
            return 1.0 - self.words.index(value) / (len(self.words) - 1)
        return (float(value) - (self.low or 0)) / ((self.high or 0) - (self.low or 0))


class Scorer(_Part):
    """One scorer: its kind, its name, and what the kind takes."""

    kind: Literal[
        "exact", "normalised", "includes", "regex", "number", "json_field", "choice", "similarity", "judge", "python"
    ]
    name: Name | None = None  # None: its kind
    weight: Annotated[float, Field(gt=0)] = 1.0  # in the mean that is `score`
    expected: str | None = None  # Jinja over the columns, in place of the sample's target
    where: dict[str, Any] = Field(default_factory=dict)  # columns and values: other samples are not scored by it
    negate: bool = False
    threshold: Share | None = None  # from which value an answer is right
    ignore_case: bool = False
    pattern: str | None = None  # of regex; None: the target is the pattern
    tolerance: str | float = 0.0  # of number: 0.01, or "1%" of the target
    field: str | None = None  # of json_field, its parts separated by dots
    function: str | None = None  # of python: file.py:name
    rubric: str | None = None  # of judge: Jinja over the columns
    form: dict[str, str] = Field(default_factory=dict)  # of judge: field -> what it holds
    value: str | None = None  # of judge: the field that scores; None: the first that is no text
    pass_from: float | str | None = None  # of judge: the value from which an answer is right

    @property
    def called(self) -> str:
        """Its name."""
        return self.name or self.kind

    @property
    def scoring_field(self) -> str:
        """The field of its form that scores."""
        return self.value or next((name for name, kind in self.form.items() if not Kind.of(kind).is_text), "")

    @property
    def least(self) -> float:
        """The value from which an answer is right."""
        if self.threshold is not None:
            return self.threshold
        if self.kind == "judge" and self.pass_from is not None:
            return Kind.of(self.form[self.scoring_field]).share(self.pass_from) or 0.0
        return 1.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, kinds in _TAKEN.items():
            if name in self.model_fields_set and self.kind not in kinds:
                raise ValueError(f"{name} goes with {' or '.join(kinds)}, not with {self.kind}")
        for name, kinds in _NEEDED.items():
            if not getattr(self, name) and self.kind in kinds:
                raise ValueError(f"{self.kind} needs {name}")
        if self.pattern is not None:
            _require_pattern(self.pattern)
        if self.kind == "similarity" and self.threshold is None:
            raise ValueError("similarity needs threshold: the share from which an answer is right")
        if self.kind == "number":
            tolerance_of(self.tolerance)
        if self.kind == "judge":
            self._check_judge()
        return self

    def _check_judge(self) -> None:
        kinds = {name: Kind.of(kind) for name, kind in self.form.items()}
        for name in kinds:
            if not re.fullmatch(NAME, name):
                raise ValueError(f"form: {name!r} is no name of a field: write it in a-z, 0-9 and _")
        if self.scoring_field not in kinds or kinds[self.scoring_field].is_text:
            raise ValueError('form has no field that scores: add one, as in score = "1..5"')
        kind = kinds[self.scoring_field]
        if self.pass_from is None and self.threshold is None and not kind.words:
            raise ValueError(f"a scale needs pass_from: the {self.scoring_field} from which an answer is right")
        if self.pass_from is not None and kind.value(self.pass_from) is None:
            raise ValueError(f"pass_from: {self.pass_from!r} is not {kind.told}")


_TAKEN: Mapping[str, tuple[str, ...]] = {
    "pattern": ("regex",),
    "tolerance": ("number",),
    "field": ("json_field",),
    "function": ("python",),
    **dict.fromkeys(("rubric", "form", "value", "pass_from"), ("judge",)),
    "ignore_case": ("exact", "includes", "regex", "json_field"),
}
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "field": ("json_field",),
    "function": ("python",),
    "rubric": ("judge",),
    "form": ("judge",),
}


def _prompts(value: Any) -> Any:
    return {"direct": value} if isinstance(value, str) or (isinstance(value, Mapping) and _is_prompt(value)) else value


def _is_prompt(value: Mapping[str, Any]) -> bool:
    return bool(value.keys() & {"user", "file"}) and not any(isinstance(part, Mapping) for part in value.values())


class SuiteFile(_Part):
    """The whole file."""

    name: Name | None = None  # None: that of the folder, or of the file where it is not called suite
    title: str = ""
    asks: str = ""  # what it is about, for `evalake run --help`
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z._]{1,20}$")] = "1"
    dataset: Texts
    columns: dict[FieldName, str] = Field(default_factory=dict)  # field of a sample -> column
    prompts: dict[Name, Prompt]
    parameters: dict[str, Any] = Field(default_factory=dict)  # of requests to the model that is evaluated
    reply: Reply = Reply()
    scorers: tuple[Scorer, ...]
    slices: Texts = ()
    metrics: Annotated[tuple[MetricName, ...], BeforeValidator(_listed)] = ("accuracy", "mean_score", "unreadable_rate")
    target: Share | None = None  # the accuracy to be reached
    baselines: dict[Annotated[str, Field(pattern="^[a-z0-9_-]{1,60}$")], str] = Field(
        default_factory=dict
    )  # name -> the text that it always replies
    models: Texts = ()  # that a run without --models asks
    judges: Texts = ()
    panel: bool = False  # whether the judges of a run decide together, too: by majority, and mean scores

    _path: Path = PrivateAttr(default=Path())

    @model_validator(mode="before")
    @classmethod
    def _shortened(cls, given: Any) -> Any:
        """Write out the short forms: `prompt`, `reply` and `score` may be one word or one table."""
        if not isinstance(given, Mapping):
            return given
        whole = dict(given)
        for short, long in (("prompt", "prompts"), ("score", "scorers")):
            if short in whole:
                if long in whole:
                    raise ValueError(f"give either {short} or {long}")
                whole[long] = whole.pop(short)
        if "prompts" in whole:
            named = _prompts(whole["prompts"])
            whole["prompts"] = (
                {name: {"user": each} if isinstance(each, str) else each for name, each in named.items()}
                if isinstance(named, Mapping)
                else named
            )
        if isinstance(whole.get("reply"), str):
            whole["reply"] = {"read": whole["reply"]}
        if "scorers" in whole:
            several = whole["scorers"] if isinstance(whole["scorers"], list) else [whole["scorers"]]
            whole["scorers"] = [{"kind": each} if isinstance(each, str) else each for each in several]
        return whole

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.scorers:
            raise ValueError("scorers: there is none")
        if not self.dataset:
            raise ValueError("dataset: there is none")
        if not self.prompts:
            raise ValueError("prompts: there is none")
        for name, times in Counter(scorer.called for scorer in self.scorers).items():
            if times > 1:
                raise ValueError(f"scorers: {times} are called {name}: give each a name of its own")
        if self.panel and not self.judges_by_model:
            raise ValueError("panel: no scorer is a judge")
        for metric in self.metrics:
            self._check_metric(metric)
        return self

    def _check_metric(self, metric: str) -> None:
        kind, _, scorer = metric.partition("_")
        if kind in ("score", "accuracy") and scorer and scorer not in {each.called for each in self.scorers}:
            raise ValueError(f"metrics: {metric!r} names no scorer: there are {self.scorer_names}")

    @property
    def scorer_names(self) -> str:
        """The names of its scorers, for people."""
        return ", ".join(each.called for each in self.scorers)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def folder(self) -> Path:
        """The folder that its paths start from."""
        return self._path.parent

    @property
    def called(self) -> str:
        """Its name."""
        return self.name or name_of(self._path)

    def full_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Write models by their full names: one of the file's own baselines is a model named after the suite, too."""
        return tuple(f"baseline/{self.called}-{name}" if name in self.baselines else name for name in names)

    @property
    def default_models(self) -> tuple[str, ...]:
        """The models that a run without --models asks: those it names, else its baselines but the judges."""
        return self.full_names(self.models or [name for name in self.baselines if name not in self.judges])

    @property
    def judges_by_model(self) -> tuple[Scorer, ...]:
        """The scorers that ask a judge."""
        return tuple(each for each in self.scorers if each.kind == "judge")


def tolerance_of(written: str | float) -> tuple[float, bool]:
    """Read a tolerance: its size, and whether it is a share of the target. Raises ValueError where it is none."""
    text = str(written).strip()
    try:
        size = float(text.removesuffix("%"))
    except ValueError:
        size = -1.0
    if not 0 <= size < float("inf"):
        raise ValueError(f'tolerance: {written!r} is none: write a number, or a share of the target as "1%"')
    return (size / 100, True) if text.endswith("%") else (size, False)


def _require_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern: {pattern!r} is no regular expression: {error}") from error


# Reading: the file's text, its content, and the line of each field.


def name_of(path: Path) -> str:
    """Name the suite of a file: after its folder where it is called suite, after the file otherwise."""
    return path.resolve().parent.name if path.name in FILES else path.stem


def read_suite_file(path: Path) -> SuiteFile:
    """Read a suite's file. Raises SuiteError with a line for every mistake."""
    given, lines = content(path)
    return checked(given, path, lines)


def checked(given: Any, path: Path, lines: Mapping[tuple[str, ...], int]) -> SuiteFile:
    """Check what a suite's file says. Raises SuiteError with a line for every mistake."""
    try:
        read = SuiteFile.model_validate(given)
    except ValidationError as error:
        raise MistakesError(tuple(dict.fromkeys(_mistakes(error, path, lines)))) from error
    read._path = path
    if not re.fullmatch(NAME, read.called) or read.called.split("_")[-1] == "run":
        raise SuiteError(
            f"{path}: name: {read.called!r} is no name of a suite: add one in a-z, 0-9 and _ that does not end in run"
        )
    return read


def content(path: Path) -> tuple[Any, Mapping[tuple[str, ...], int]]:
    """Read what the file says and the line of each field. Raises SuiteError where it is neither TOML nor YAML."""
    try:
        text = read_file(path, MEGABYTE).decode("utf-8")
        if path.suffix == ".toml":
            return tomllib.loads(text), dict(_lines_of_toml(text))
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return yaml.safe_load(text), dict(_lines_of_yaml(node, ()))
    except FileRefusedError as error:
        raise SuiteError(f"{path} cannot be read: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f":{error.problem_mark.line + 1}"
        raise SuiteError(f"{path}{line}: no valid YAML: {error.problem}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise SuiteError(f"{path}: no valid {path.suffix[1:].upper()}: {' '.join(str(error).split())[:200]}") from error


def placed(path: Path, *where: str) -> str:
    """Write a field of a suite's file with its line, as mistakes are told."""
    line = _line_of(where, content(path)[1])
    return f"{path}:{line}: {'.'.join(where)}" if line else f"{path}: {'.'.join(where)}"


def _mistakes(error: ValidationError, path: Path, lines: Mapping[tuple[str, ...], int]) -> Iterator[str]:
    for flaw in error.errors(include_url=False):
        where = tuple(str(part) for part in flaw["loc"] if part != "[key]")
        message = flaw["msg"].removeprefix("Value error, ")
        if flaw["type"] == "extra_forbidden":
            message = "there is no such field"
        elif flaw["type"] == "missing":
            message = f"it is missing{_INSTEAD.get(where, '')}"
        elif flaw["type"] == "literal_error":
            message += f", not {flaw['input']!r}"
        elif flaw["type"] == "string_pattern_mismatch":
            message = f"{flaw['input']!r} is no name: write it in a-z, 0-9 and _, beginning with a letter"
        if named := re.match(r"([a-z_]+): ", message):
            where, message = (*where, named[1]), message[named.end() :]
        place = f"{path}:{line}" if (line := _line_of(where, lines)) else str(path)
        yield f"{place}: {'.'.join(where)}: {message}" if where else f"{place}: {message}"


_INSTEAD: Mapping[tuple[str, ...], str] = {
    ("prompts",): ': write prompt = "…"',
    ("scorers",): ': write score = "exact", or another kind',
}
_SHORT = {"prompts": "prompt", "scorers": "score"}


def _line_of(where: Sequence[str], lines: Mapping[tuple[str, ...], int]) -> int | None:
    """Find the line of a field, or else of what holds it, under its long or its short name."""
    for end in range(len(where), 0, -1):
        first, *others = where[:end]
        short = _SHORT.get(first, first)
        paths: list[tuple[str, ...]] = [(first, *others), (short, *others), (short, *others[1:])]
        for path in paths:
            if line := lines.get(path):
                return line
    return None


_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def _lines_of_toml(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the line of each table and key. Lines of a text over several lines are none."""
    table: tuple[str, ...] = ()
    counts: Counter[tuple[str, ...]] = Counter()
    inside: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if inside is None:
            if header := _TABLE.match(line):
                table = _parts(header[2])
                if header[1] == "[[":
                    counts[table] += 1
                    yield table, number
                    table = (*table, str(counts[table] - 1))
                yield table, number
            elif key := _KEY.match(line):
                yield (*table, *_parts(key[1])), number
        for quotes in re.findall(r'"""|\'\'\'', line):
            inside = quotes if inside is None else None if inside == quotes else inside


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _lines_of_yaml(node: yaml.Node | None, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, str(key.value)), key.start_mark.line + 1
            yield from _lines_of_yaml(value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, str(index)), value.start_mark.line + 1
            yield from _lines_of_yaml(value, (*path, str(index)))
