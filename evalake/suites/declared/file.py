"""A suite's file: what `suite.toml` or `suite.yaml` may say, read with every mistake named by line and field."""

import re
import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from evalake.core.configuration import SUITE_SUFFIXES
from evalake.core.errors import SourceError, SuiteError
from evalake.sdk.sources import expanded
from evalake.suites.declared import promptfoo
from evalake.suites.declared.parts import NAME, Name, Part, Prompt, Reply, Scorer, Share, Texts, listed
from evalake.suites.declared.texts import Lines, content, placed

FILES = tuple(f"suite{suffix}" for suffix in SUITE_SUFFIXES)
"""The names of a suite's file in its folder."""

FIELDS = ("sample_id", "input", "target", "label", "category", "severity", "difficulty", "cluster")
"""The fields of a sample that a column of the dataset can fill."""

METRIC = re.compile(r"accuracy|mean_score|unreadable_rate|(?:score|accuracy)_[a-z][a-z0-9_]*|pass[@^][1-9][0-9]?")


class MistakesError(SuiteError):
    """A suite's file says what cannot be; `mistakes` names each with its line and field."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


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


FieldName = Annotated[str, AfterValidator(_a_field)]
MetricName = Annotated[str, AfterValidator(_a_metric)]
BaselineName = Annotated[str, Field(pattern="^[a-z0-9_-]{1,60}$")]


def _prompts(value: Any) -> Any:
    """Write out the short forms: one prompt is `direct`, and a text is what its user says."""
    is_prompt = isinstance(value, Mapping) and value.keys() & {"user", "file", "messages"}
    if isinstance(value, str) or (is_prompt and not any(isinstance(part, Mapping) for part in value.values())):
        value = {"direct": value}
    if not isinstance(value, Mapping):
        return value
    return {name: {"user": each} if isinstance(each, str) else each for name, each in value.items()}


def _reply(value: Any) -> Any:
    return {"read": value} if isinstance(value, str) else value


def _scorers(value: Any) -> Any:
    several = value if isinstance(value, list) else [value]
    return [{"kind": each} if isinstance(each, str) else each for each in several]


class SuiteFile(Part):
    """The whole file."""

    name: Name | None = None  # None: that of the folder, or of the file where it is not called suite
    title: str = ""
    asks: str = ""  # what it is about, for `evalake run --help`
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z._]{1,20}$")] = "1"
    dataset: Texts = ()
    samples: tuple[dict[str, Any], ...] = ()  # rows written in the file itself, in place of a dataset
    columns: dict[FieldName, str] = Field(default_factory=dict)  # field of a sample -> column
    prompts: Annotated[dict[Name, Prompt], BeforeValidator(_prompts)]
    every_prompt: bool = False  # whether a run without --prompt-types asks with all of them; else with the first
    parameters: dict[str, Any] = Field(default_factory=dict)  # of requests to the model that is evaluated
    reply: Annotated[Reply, BeforeValidator(_reply)] = Reply()
    scorers: Annotated[tuple[Scorer, ...], BeforeValidator(_scorers)]
    pass_from: Share | None = None  # the score from which an answer is right; None: every scorer finds it right
    slices: Texts = ()
    metrics: Annotated[tuple[MetricName, ...], BeforeValidator(listed)] = ("accuracy", "mean_score", "unreadable_rate")
    target: Share | None = None  # the accuracy to be reached
    baselines: dict[BaselineName, str] = Field(default_factory=dict)  # name -> the text that it always replies
    models: Texts = ()  # that a run without --models asks
    judges: Texts = ()
    panel: bool = False  # whether the judges of a run decide together, too: by majority, and mean scores

    _path: Path = PrivateAttr(default=Path())
    _notes: tuple[str, ...] = PrivateAttr(default=())
    _of_promptfoo: bool = PrivateAttr(default=False)

    @model_validator(mode="before")
    @classmethod
    def _shortened(cls, given: Any) -> Any:
        """Take `prompt` for `prompts`, and `score` for `scorers`."""
        if not isinstance(given, Mapping):
            return given
        whole = dict(given)
        for short, long in (("prompt", "prompts"), ("score", "scorers")):
            if short in whole:
                if long in whole:
                    raise ValueError(f"give either {short} or {long}")
                whole[long] = whole.pop(short)
        return whole

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.scorers:
            raise ValueError("scorers: there is none")
        if bool(self.dataset) == bool(self.samples):
            raise ValueError(f"dataset: {'give either dataset or samples' if self.dataset else 'there is none'}")
        if not self.prompts:
            raise ValueError("prompts: there is none")
        for name, times in Counter(scorer.called for scorer in self.scorers).items():
            if times > 1:
                raise ValueError(f"scorers: {times} are called {name}: give each a name of its own")
        if self.panel and not self.judges_by_model:
            raise ValueError("panel: no scorer is a judge")
        names = [each.called for each in self.scorers]
        for metric in self.metrics:
            kind, _, scorer = metric.partition("_")
            if kind in ("score", "accuracy") and scorer and scorer not in names:
                raise ValueError(f"metrics: {metric!r} names no scorer: there are {', '.join(names)}")
        return self

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def notes(self) -> tuple[str, ...]:
        """What a file of another tool says and was not understood, each with its line."""
        return self._notes

    @property
    def of_promptfoo(self) -> bool:
        """Whether it is a configuration of promptfoo, whose functions take promptfoo's context."""
        return self._of_promptfoo

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of its samples: its datasets, or the file itself where it holds them.

        Raises SuiteError where a pattern or folder gives no table, or one that is a link out.
        """
        try:
            found = [each for source in self.dataset for each in expanded(source, self.folder)]
        except SourceError as error:
            raise SuiteError(f"{self._path}: dataset: {error}") from error
        return tuple(found) or (self._path.name,)

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


# Reading: the file's text, its content, and the line of each field.


def name_of(path: Path) -> str:
    """Name the suite of a file: after its folder where it is called suite, after the file otherwise."""
    return path.resolve().parent.name if path.name in FILES else path.stem


def said_name(path: Path) -> str:
    """Find the name that a suite's file gives, or else its own; a broken file has one, too."""
    try:
        given = content(path)[0]
    except SuiteError:
        given = None
    if promptfoo.is_config(given):
        return promptfoo.name_of(path)
    said = given.get("name") if isinstance(given, dict) else None
    return said if isinstance(said, str) and re.fullmatch(NAME, said) else name_of(path)


def read_suite_file(path: Path) -> SuiteFile:
    """Read a suite's file, or a configuration of promptfoo. Raises SuiteError with a line for every mistake."""
    given, lines = content(path)
    if not promptfoo.is_config(given):
        return checked(given, path, lines)
    translated, notes = promptfoo.translate(given, path, lines)
    try:
        read = checked(translated, path, {})
    except MistakesError as error:
        raise MistakesError([*notes, *error.mistakes]) from error
    read._notes, read._of_promptfoo = tuple(notes), True
    return read


def checked(given: Any, path: Path, lines: Lines) -> SuiteFile:
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


def _mistakes(error: ValidationError, path: Path, lines: Lines) -> Iterator[str]:
    for flaw in error.errors(include_url=False):
        where = tuple(str(part) for part in flaw["loc"] if part != "[key]")
        message = flaw["msg"].removeprefix("Value error, ")
        if flaw["type"] == "extra_forbidden":
            message = "there is no such field"
        elif flaw["type"] == "missing":
            message = f"it is missing{_INSTEAD.get(where, '')}"
        elif flaw["type"] == "model_type":
            message = "it holds no fields"
        elif flaw["type"] == "literal_error" or flaw["type"].endswith(("_type", "_parsing")):
            message = f"{message.replace('a valid tuple', 'a list')}, not {reprlib.repr(flaw['input'])}"
        elif flaw["type"] == "string_pattern_mismatch":
            message = f"{flaw['input']!r} is no name: write it in a-z, 0-9 and _, beginning with a letter"
        if named := re.match(r"([a-z_]+): ", message):
            where, message = (*where, named[1]), message[named.end() :]
        yield f"{placed(path, where, lines)}: {message}"


_INSTEAD: Mapping[tuple[str, ...], str] = {
    ("prompts",): ': write prompt = "…"',
    ("scorers",): ': write score = "exact", or another kind',
}
