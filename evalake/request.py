"""What can be asked of a run: each option stands here once, with its type, default, bounds and help.

The command line, the flow's parameters and form, `Lake.run` and the parameters in a row of `runs` are made from it. A
new option takes a line here, and the place that uses it.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY
from dataclasses import dataclass as plain_dataclass
from datetime import date
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, get_args

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator, validate_call
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from evalake.core.configuration import lake_uri
from evalake.core.errors import UsageError
from evalake.core.redaction import redact

MOST_REPLICATES = 1_000_000
"""Replicates above belong to canaries, which number them by the day."""

LONGEST_SHOWN = 100


def listed(value: Any) -> Any:
    """Make a tuple of names: of a list, or of a text with commas or lines between them; each once."""
    if isinstance(value, str):
        return lines(value.replace(",", "\n"))
    if value is None or value in ([], ()):
        return ()
    if not isinstance(value, Iterable) or not all(isinstance(name, str) for name in value):
        return value
    if not (names := lines("\n".join(value))):
        raise ValueError("are blank: name some, or leave the option out")
    return names


def lines(value: Any) -> Any:
    """Make a tuple of texts that may hold commas: of a list, or of a text with one a line."""
    if isinstance(value, str):
        return tuple(dict.fromkeys(line.strip() for line in value.splitlines() if line.strip()))
    return tuple(value) if isinstance(value, list) else value or ()


NAMES, LINES = BeforeValidator(listed), BeforeValidator(lines)
Names = Annotated[Sequence[str], NAMES]
Lines = Annotated[Sequence[str], LINES]
Tags = Annotated[Sequence[Annotated[str, Field(max_length=100)]], LINES]
Count = Annotated[int | None, Field(ge=1)]
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
File = Annotated[Path | None, BeforeValidator(lambda value: value or None)]
Lake = Annotated[str, BeforeValidator(lambda value: lake_uri(None) if value is None else value)]


def _option(
    default: Any, text: str, metavar: str = "", flag: str = "", unset: str = "", known: str = "", **bounds: Any
) -> Any:
    """Declare an option.

    Args:
        default: Its value where nobody gives one.
        text: What it says, in every place.
        metavar: What stands for its value on the command line.
        flag: Its name on the command line, where that is another.
        unset: The form's word for the default, beside which another value may be given.
        known: Which names the form offers.
        bounds: What its value is held to.
    """
    shown: dict[str, Any] = {"metavar": metavar, "flag": flag, "unset": unset, "known": known}
    return Field(default, description=text, json_schema_extra=shown, validate_default=True, **bounds)


CONFIGURED, CEILING = "as configured", "in all its attempts; a lower configured ceiling holds."


@dataclass(frozen=True, config={"extra": "forbid"})
class RunRequest:
    """A run as somebody asks for it. Options at their defaults leave the choice to the suite and the configuration."""

    suite: str = _option(..., "The suite to run.", "SUITE")
    _: KW_ONLY
    models: Names = _option((), "Subject models; by default the suite's baselines.", "NAME,…", known="models")
    judges: Names = _option((), "Judge models of a judged suite; by default its baselines.", "NAME,…", known="judges")
    datasets: Lines = _option((), "Samples; by default the starter data.", "SOURCE", flag="--dataset", known="starter")
    limit: Count = _option(None, "N samples a dataset, the same ones, evenly over categories.", "N", unset="all")
    pooled: Count = _option(
        None, "N samples of all datasets together, in proportion; clusters stay whole.", "N", unset="all"
    )
    first: Count = _option(None, "The first N samples of each dataset.", "N", unset="all")
    samples: Lines = _option((), "Samples by their names.", "ID", flag="--sample")
    only_failed: Text = _option(
        "", "Only samples that have no answer in this run, with the run's models and prompts.", "RUN"
    )
    replicates: int = _option(1, "How often each request is asked.", "N", ge=1, lt=MOST_REPLICATES)
    first_replicate: int = _option(0, "Number of the first replicate.", "N", ge=0, lt=MOST_REPLICATES)
    prompt_types: Names = _option((), "Prompt types; by default the suite's first.", "NAME,…", known="prompt_types")
    max_cost_usd: float | None = _option(
        None, f"US dollars for the run {CEILING}", "USD", "--max-cost", CONFIGURED, gt=0, allow_inf_nan=False
    )
    max_calls: Count = _option(None, f"Calls of the run {CEILING}", "N", unset=CONFIGURED)
    max_missing: float | None = _option(
        None,
        "Share of a model's items that may be missing; by default 0.05.",
        "SHARE",
        "",
        CONFIGURED,
        ge=0,
        le=1,
    )
    accept_unreadable: bool = _option(False, "Take replies without a verdict as wrong answers, however many.")
    batch: bool = _option(
        False, "Ask by the providers' batch jobs, at about half the price; a later run collects the replies."
    )
    day: date | None = _option(None, "The day that the run is for.", "DATE", unset="as scheduled")
    tags: Tags = _option((), "Tags of the run.", "TAG", flag="--tag")
    note: Text = _option("", "A note about the run.", "TEXT", max_length=2000)
    configuration_file: File = _option(
        None, "The configuration; by default ./evalake.toml.", "FILE", "--config", "evalake.toml"
    )
    lake: Lake = _option(None, "The lake: a folder, or a URI that Delta supports.", "URI", unset="the worker's own")

    @model_validator(mode="wrap")
    @classmethod
    def _say_what_is_wrong(cls, given: Any, validated: Any) -> Any:
        """Raise UsageError, with one sentence about the first value that cannot be."""
        try:
            return validated(given)
        except ValidationError as error:
            raise UsageError(_sentence(error.errors()[0])) from None

    def __post_init__(self) -> None:
        """Raise UsageError where samples are chosen in two ways."""
        chosen = {name: getattr(self, name) for name in ("limit", "pooled", "first", "samples", "only_failed")}
        if len(ways := [OPTIONS[name].flag for name, value in chosen.items() if value]) > 1:
            raise UsageError(f"{' and '.join(ways)} exclude each other: choose samples in one way")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The request as the parameters of the flow `evaluate`, in JSON's types."""
        return dict(TypeAdapter(RunRequest).dump_python(self, mode="json"))

    @property
    def command(self) -> str:
        """The command line that asks for the same."""
        words = ["evalake", "run", self.suite]
        for option in list(OPTIONS.values())[1:]:
            value = getattr(self, option.name)
            if value == option.default:
                continue
            values = [",".join(value)] if option.separator == "," else value if option.separator else [str(value)]
            words += [option.flag] if value is True else [word for each in values for word in (option.flag, each)]
        return shlex.join(words)


@plain_dataclass(frozen=True)
class Option:
    """An option of a run as the command line, forms and messages show it."""

    name: str
    field: FieldInfo
    default: Any
    text: str
    type: type  # of its value, or of each of its values
    separator: str  # between its values in a text; nothing where it has one value
    flag: str
    metavar: str
    unset: str
    known: str


def _option_of(name: str, field: Any) -> Option:
    types = (field.annotation, *get_args(field.annotation))
    of = next((each for each in (bool, int, float, date, Path) if each in types), str)
    separator = "," if NAMES in field.metadata else "\n" if LINES in field.metadata else ""
    shown = field.json_schema_extra
    shown = {**shown, "flag": shown["flag"] or f"--{name.replace('_', '-')}"}
    return Option(name, field, field.default, field.description, of, separator, **shown)


OPTIONS = {name: _option_of(name, field) for name, field in RunRequest.__pydantic_fields__.items()}  # type: ignore[attr-defined]


def _sentence(error: ErrorDetails) -> str:
    place = error["loc"][0] if error["loc"] else ""
    name = list(OPTIONS)[place] if isinstance(place, int) and place < len(OPTIONS) else str(place)
    if error["type"] in ("unexpected_keyword_argument", "no_such_attribute"):
        return f"a run has no option {name!r}: it has {', '.join(OPTIONS)}"
    if error["type"] == "missing":
        return f"a run needs its {name}"
    if error["type"] == "value_error":
        return f"the {name.replace('_', ' ')} {error['msg'].partition(', ')[2]}"
    shown = redact(str(error["input"]))[:LONGEST_SHOWN]
    return f"{OPTIONS[name].flag} {error['msg'].replace('Input should', 'must', 1)}, not {shown}"


P = ParamSpec("P")
R = TypeVar("R")


def checks_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Hold the arguments of a function to their types; it then raises UsageError, with one sentence about the first."""
    validated = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(function)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return validated(*args, **kwargs)
        except ValidationError as error:
            raise UsageError(f"{function.__name__}: {_argument(error.errors()[0], function)}") from None

    return checked


def _argument(error: ErrorDetails, function: Callable[..., Any]) -> str:
    names = list(signature(function).parameters)
    place = error["loc"][0]
    name = names[place] if isinstance(place, int) and place < len(names) else str(place)
    taken = ", ".join(each for each in names if each != "self")
    if error["type"].startswith("missing"):
        return f"{name} is missing: it takes {taken}"
    if error["type"].startswith("unexpected"):
        return f"there is no argument {name}: it takes {taken}"
    return (
        f"{name} {error['msg'].replace('Input should', 'must', 1)}, not {redact(repr(error['input']))[:LONGEST_SHOWN]}"
    )
