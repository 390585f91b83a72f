"""The parts of a suite's file: prompts, how replies are read, and scorers, each checked by itself."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from evalake.core.files import tables_beside
from evalake.suites.declared.texts import require_pattern

NAME = r"^[a-z][a-z0-9_]{0,59}$"
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

Name = Annotated[str, Field(pattern=NAME)]
Share = Annotated[float, Field(ge=0, le=1)]


class Part(BaseModel):
    """A part of the file; a field that it lacks is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def listed(value: Any) -> Any:
    """Take one text as a list of one."""
    return [value] if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(listed)]


class Message(Part):
    """A message of a chat: Jinja over the columns of a sample."""

    role: Literal["system", "user", "assistant"]
    content: str


class Prompt(Part):
    """How a model is asked: Jinja over the columns of a sample, inline or in a file, with worked examples."""

    user: str | None = None
    messages: tuple[Message, ...] = ()  # a whole chat, in place of user; its last message is what is asked
    system: str | None = None
    file: str | None = None  # holds the user's part
    examples: str | None = None  # a table with the columns of the dataset
    shots: Annotated[int, Field(ge=1)] | None = None  # how many of them; None: all
    answer: str = "{{ target }}"  # the reply of an example

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum([self.user is not None, self.file is not None, bool(self.messages)]) != 1:
            raise ValueError("give one of user, the text, file, its file, and messages, a whole chat")
        if self.shots is not None and self.examples is None:
            raise ValueError("shots counts examples: name their file in examples")
        return self


class Reply(Part):
    """How an answer is read from a reply."""

    read: Literal["text", "raw", "last_line", "json", "regex", "choice", "number"] = "text"
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
            require_pattern(self.pattern)
        _kinds(self.form)
        return self


class Kind(Part):
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

    @property
    def json_schema(self) -> dict[str, Any]:
        """The kind as a JSON schema; bounds of numbers, which some providers refuse, stand in the prompt alone."""
        if self.words:
            return {"type": "string", "enum": list(self.words)}
        return {"type": "string" if self.is_text else "integer" if self.whole else "number"}

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


class Scorer(Part):
    """One scorer: its kind, its name, and what the kind takes."""

    # fmt: off
    kind: Literal[
        "exact", "equals", "normalised", "includes", "includes_all", "starts_with", "regex", "number", "json_field",
        "is_json", "has_json", "choice", "similarity", "distance", "judge", "python", "unknown",
    ]
    # fmt: on
    name: Name | None = None  # None: its kind
    weight: Annotated[float, Field(gt=0)] = 1.0  # in the mean that is `score`
    column: str | None = None  # holds what is expected, in place of target; samples without it are not scored by it
    expected: str | None = None  # Jinja over the columns, in place of the sample's target
    where: dict[str, Any] = Field(default_factory=dict)  # columns and values: other samples are not scored by it
    negate: bool = False
    threshold: Share | None = None  # from which value an answer is right
    ignore_case: bool = False
    pattern: str | None = None  # of regex; None: the target is the pattern
    tolerance: str | float = 0.0  # of number: 0.01, or "1%" of the target
    within: Annotated[int, Field(ge=0, le=10_000)] = 5  # of distance: how many letters may differ
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
        for name, kinds in _FIELDS["taken"].items():
            if name in self.model_fields_set and self.kind not in kinds:
                raise ValueError(f"{name} goes with {' or '.join(kinds)}, not with {self.kind}")
        for name, kinds in _FIELDS["needed"].items():
            if not getattr(self, name) and self.kind in kinds:
                raise ValueError(f"{self.kind} needs {name}")
        if self.pattern is not None:
            require_pattern(self.pattern)
        if self.kind == "similarity" and self.threshold is None:
            raise ValueError("similarity needs threshold: the share from which an answer is right")
        if self.kind == "number":
            tolerance_of(self.tolerance)
        if self.kind == "judge":
            self._check_judge()
        return self

    def _check_judge(self) -> None:
        kinds = _kinds(self.form)
        for name in kinds:
            if not re.fullmatch(NAME, name):
                raise ValueError(f"form: {name!r} is no name of a field: write it in a-z, 0-9 and _")
        if self.scoring_field not in kinds or kinds[self.scoring_field].is_text:
            raise ValueError('form: it has no field that scores: add one, as in score = "1..5"')
        kind = kinds[self.scoring_field]
        if self.pass_from is None and self.threshold is None and not kind.words:
            raise ValueError(f"a scale needs pass_from: the {self.scoring_field} from which an answer is right")
        if self.pass_from is not None and kind.value(self.pass_from) is None:
            raise ValueError(f"pass_from: {self.pass_from!r} is not {kind.told}")


def _kinds(form: Mapping[str, str]) -> dict[str, Kind]:
    """Read a form. Raises ValueError where it names no kind."""
    try:
        return {name: Kind.of(kind) for name, kind in form.items()}
    except ValueError as error:
        raise ValueError(f"form: {error}") from error


_FIELDS = tables_beside(__file__, "parts.toml")


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
