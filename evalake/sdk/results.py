"""Result rows: the columns that result tables of suites share, what they hold, and the contract that follows."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from evalake.contracts.contract import ENDPOINTS_OF_RESULTS, Change, Contract, Renamed, Row, RowModel, fits_folder
from evalake.contracts.rule import TOKEN_RULES, Rule, hash_rule, not_blank, not_negative
from evalake.contracts.tables.runs import ITEM_KEY
from evalake.core.configuration import UNKNOWN
from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.models.request import Reply
from evalake.sdk.sample import Exchange, Item, Recorded, Sample
from evalake.sdk.sources import as_json, is_storable, storable

LANDED_BY_RUN = Renamed(columns={"run_id": "landed_by_run"})
"""A change of every table of results: a run's rows are those of the view `run_results`, not those it landed first."""

FALLBACK_FOR = "fallback_for"
"""The column by which a row names the judge in whose place another judged, in suites that have it."""


class ResultRow(RowModel):
    """Base of result rows: what was asked whom. A suite's own columns follow, and then those of `ReplyColumns`."""

    # A column that stands elsewhere than where it is declared -> the column before it; "" is the beginning.
    stands_after: ClassVar[Mapping[str, str]] = {}

    landed_by_run: str = Field(description="The run that landed the row first.")
    origin: Literal["call", "import"] = Field(description="Asked by evalake, or imported from recorded results.")
    dataset: str = Field(description="The sample's dataset.")
    sample_id: str = Field(description="The sample.")
    sample_hash: str = Field(description="The sample's content hash: input, target and label are part of it.")
    model: str = Field(description="The model that answered, as the run names it.")
    prompt_type: str = Field(description="Which of the suite's prompts was used.")
    replicate: int = Field(description="Which repeat of the same requests this is, from 0.")
    prompt_hash: str = Field(description="The prompt hash of the first request; of the identity where it is imported.")
    endpoint: str = Field(description="The endpoint that answered it; unknown in rows from before this column.")
    reply_revision: int = Field(description="0; higher where a withdrawn reply was asked for again.")
    scorer_version: str = Field(description="The version of the rules that turned the replies into this row.")

    @classmethod
    def column_names(cls) -> Sequence[str]:
        """List the columns in the order of the table."""
        last = ReplyColumns.model_fields if issubclass(cls, ReplyColumns) else ()
        names = sorted(cls.model_fields, key=lambda name: name in last)
        for name, place in cls.stands_after.items():
            names.remove(name)
            names.insert(names.index(place) + 1 if place else 0, name)
        return names


class ReplyColumns(RowModel):
    """What the model's replies took: a further base of result rows, whose columns stand last."""

    latency_ms: float | None = Field(description="Milliseconds until the reply was there; of several, their sum.")
    input_tokens: int | None = Field(description="Tokens of the prompt, cached ones included.")
    cached_input_tokens: int | None = Field(description="Tokens of the prompt that the provider had cached.")
    output_tokens: int | None = Field(description="Tokens of the reply, reasoning included.")
    reasoning_tokens: int | None = Field(description="Tokens of the reply spent on reasoning.")
    cost_usd: float | None = Field(description="What the reply cost in US dollars; null where the price is unknown.")


_REPLY_COLUMNS = tuple(ReplyColumns.model_fields)
_of_reply = attrgetter(*_REPLY_COLUMNS)


class JudgedRow(ResultRow):
    """Base of result rows where a judge model says what an answer is worth."""

    stands_after: ClassVar[Mapping[str, str]] = {
        "judge": "model",
        "judge_hash": "prompt_hash",
        "judge_endpoint": "endpoint",
    }

    judge: str = Field(description="The judge, as the run names it.")
    judge_hash: str = Field(description="The prompt hash of the first request to the judge.")
    judge_endpoint: str = Field(description="The endpoint of the judge call; unknown where nothing was judged.")
    judge_cost_usd: float | None = Field(description="What its judgement cost; null where the price is unknown.")


def identity_columns(item: Item, answered: Sequence[Exchange], scorer_version: str) -> dict[str, Any]:
    """Fill the columns of `ResultRow`, and of `JudgedRow` where a judge was asked after the model.

    `landed_by_run` and `origin` are filled in where the row lands.
    """
    columns = asked_columns(item, answered, scorer_version)
    if item.judge is None:
        return columns
    judged, endpoint = unjudged_hash(answered[0].prompt_hash, item.judge), UNKNOWN
    if len(answered) > 1:
        judged, endpoint = answered[1].prompt_hash, answered[1].endpoint
    cost = reply_columns(*(each.outcome for each in answered[1:] if isinstance(each.outcome, Reply)))["cost_usd"]
    return columns | {"judge": item.judge, "judge_hash": judged, "judge_endpoint": endpoint, "judge_cost_usd": cost}


def asked_columns(item: Item, answered: Sequence[Exchange], scorer_version: str) -> dict[str, Any]:
    """Fill the columns of `ResultRow`; `landed_by_run` and `origin` are filled in where the row lands."""
    sample = item.sample
    return {
        "dataset": sample.dataset,
        "sample_id": sample.sample_id,
        "sample_hash": sample.sample_hash,
        "model": item.model,
        "prompt_type": item.prompt_type,
        "replicate": item.replicate,
        "prompt_hash": answered[0].prompt_hash,
        "endpoint": answered[0].endpoint,
        "reply_revision": sum(each.revision for each in answered),
        "scorer_version": scorer_version,
    }


def derived_item(row: Row, member: Row) -> dict[str, Any]:
    """Build the run item of a row that a suite derives, from one of the rows behind it."""
    names = ("dataset", "sample_id", "prompt_type", *ITEM_KEY)
    version = {"dataset_version": member["dataset_version"]} if "dataset_version" in member else {}
    return {name: row[name] for name in names} | version


def unjudged_hash(prompt_hash: str, judge: str) -> str:
    """Compute the stand-in for the judge call's hash in an item whose model gave nothing to judge."""
    return content_hash(["nothing to judge", prompt_hash, judge])


def reply_columns(*replies: Reply) -> dict[str, Any]:
    """Fill the columns of `ReplyColumns` with sums over the replies; null where one of them is unknown."""
    if len(replies) == 1:  # the common case, once a row: nothing to sum
        return dict(zip(_REPLY_COLUMNS, _of_reply(replies[0]), strict=True))
    return {name: _sum([getattr(reply, name) for reply in replies]) for name in _REPLY_COLUMNS}


def result_contract(
    table: str,
    row: type[ResultRow],
    rules: Sequence[Rule] = (),
    *,
    description: str = "",
    changes: Sequence[Change] = (),
    **more: Any,
) -> Contract:
    """Make the contract of a result table: key and rules of the shared columns, the suite's own rules, partitions.

    Args:
        table: The table's name, like quiz_results.
        row: What a row is.
        rules: Rules of the suite's own columns.
        description: What a row is, in a sentence; the first line of the row's docstring where it is left out.
        changes: The suite's own changes of the table. `LANDED_BY_RUN` comes before them and `ENDPOINTS_OF_RESULTS`
            after them, unless they are among them: a suite with earlier changes lists both behind those.
        more: Further fields of the contract, like `replaced_when`.
    """
    first = () if LANDED_BY_RUN in changes else (LANDED_BY_RUN,)
    last = () if ENDPOINTS_OF_RESULTS in changes else (ENDPOINTS_OF_RESULTS,)
    shared = more | {"replaced_when": replaced_when(more.get("replaced_when")), "changes": (*first, *changes, *last)}
    described = description or (row.__doc__ or "").strip().partition("\n")[0]
    key = result_key(row)
    return Contract(table, row, key, described, (*result_rules(row), *rules), partition_by=("model",), **shared)


def replaced_when(own: str | None = None) -> str:
    """Build the condition by which a row is replaced: as the suite says, or by a reply that was asked again."""
    asked_again = "new.reply_revision > old.reply_revision"
    return asked_again if own is None else f"({own}) AND new.reply_revision = old.reply_revision OR {asked_again}"


def result_key(row: type[ResultRow]) -> tuple[str, ...]:
    """List the columns that tell result rows apart."""
    judge = ("judge", "judge_hash", "judge_endpoint") if issubclass(row, JudgedRow) else ()
    return ("prompt_hash", "endpoint", "sample_hash", "model", *judge, "replicate", "scorer_version")


_NAMED = ("dataset", "sample_id", "model", "judge", "endpoint", "judge_endpoint")
_COUNTED = ("replicate", "reply_revision")


def result_rules(row: type[ResultRow]) -> tuple[Rule, ...]:
    """List the rules of the shared columns that a result row has."""
    has = row.model_fields
    return (
        *(hash_rule(name) for name in ("prompt_hash", "judge_hash", "sample_hash") if name in has),
        *(not_blank(name) for name in _NAMED if name in has),
        *(not_negative(name) for name in (*_COUNTED, *ReplyColumns.model_fields, "judge_cost_usd") if name in has),
        *(TOKEN_RULES if issubclass(row, ReplyColumns) else ()),
    )


def _sum(values: Sequence[Any]) -> Any:
    return None if not values or None in values else sum(values)


# JSON from outside, read strictly: the base of its models, what a name is, and messages about all that is wrong.


MOST_FLAWS = 10
IGNORED = "expected_"


class Strict(BaseModel):
    """Base of frozen models that refuse unknown fields, values of another type, and numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _named(text: str) -> str:
    if not (text.strip() and is_storable(text)):
        raise ValueError("blank, or text that cannot be stored (half a surrogate pair, or NUL)")
    return text


Name = Annotated[str, AfterValidator(_named)]
"""Text by which rows are told apart, or looked for."""


def _fitting(model: str) -> str:
    if not fits_folder(model):
        raise ValueError("too long for the name of a model")
    return model


ModelName = Annotated[Name, AfterValidator(_fitting)]
"""The name of a model or judge, which result tables have folders of."""

Line = TypeVar("Line", bound=Strict)


def read_line(kind: type[Line], line: Mapping[str, Any]) -> Line:
    """Read a decoded line of recorded results. Fields that start with `expected_` are ignored.

    Raises SourceError naming what is unknown, missing, or not what it must be.
    """
    try:
        return kind.model_validate({key: value for key, value in line.items() if not key.startswith(IGNORED)})
    except ValidationError as error:
        raise SourceError("; ".join(explain(error))) from error
    except (RecursionError, OverflowError) as error:
        raise SourceError("the line is nested too deeply, or holds a number that is too large") from error


def explain(error: ValidationError) -> tuple[str, ...]:
    """Describe flaws as `where: what`, and the wrong word if there is one; at most MOST_FLAWS, unknown fields first."""
    flaws = error.errors(include_url=False, include_context=False)
    flaws.sort(key=lambda flaw: flaw["type"] != "extra_forbidden")
    return tuple(map(_describe, flaws[:MOST_FLAWS]))


def _describe(flaw: Mapping[str, Any]) -> str:
    where, what, given = ".".join(map(str, flaw["loc"])), str(flaw["msg"]).removeprefix("Value error, "), flaw["input"]
    if flaw["type"] == "extra_forbidden":
        return f"unknown field {where[:60]!r}"
    if flaw["type"] == "literal_error" and isinstance(given, str):
        what += f", not {given[:60]!r}"
    return f"{where}: {what}" if where else what


# Recorded results as any suite can import them: a line is a sample, who was asked, and what was answered, in order.


Count = Annotated[int, Field(ge=0, lt=2**63)]


class RecordedReply(Strict):
    """What was recorded of a reply."""

    text: str | None
    finish_reason: str | None = None
    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    latency_ms: Annotated[float, Field(ge=0)] | None = None
    error_kind: str | None = None


class _Line(Strict):
    suite: Name | None = None
    dataset: Name
    sample_id: Name
    input: Name
    target: Any = None
    label: Name | None = None
    category: Name | None = None
    severity: Name | None = None
    difficulty: Name | None = None
    cluster: Name | None = None
    model: ModelName
    judge: ModelName | None = None
    prompt_type: Name = "direct"
    replicate: Count = 0
    replies: Annotated[list[RecordedReply], Field(min_length=1)]


_OF_SAMPLE = ("dataset", "sample_id", "input", "label", "category", "severity", "difficulty", "cluster")


def read_recorded(suite: str, line: Mapping[str, Any], *, is_judged: bool) -> Recorded:
    """Read one decoded line of results. Fields that start with `expected_` are ignored.

    The first of its `replies` is the model's, the others are the judge's.

    Raises SourceError naming the field that is unknown, missing, or not what it must be.
    """
    read = read_line(_Line, line)
    if is_judged != (read.judge is not None):
        raise SourceError(f"judge: {suite} {'needs one' if is_judged else 'is judged by rules, and has none'}")
    if is_judged and len(read.replies) < 2:
        raise SourceError("replies: the first is the model's, and the judge's are missing")
    target = None if read.target is None else as_json(read.target)
    sample = Sample(suite, **{name: getattr(read, name) for name in _OF_SAMPLE}, target=target)
    item = Item(sample, read.model, read.judge, read.prompt_type, read.replicate)
    asked = [sample.sample_hash, read.model, read.prompt_type]
    hashes = [content_hash([*asked, read.judge if place else None, place]) for place in range(len(read.replies))]
    return Recorded(item, tuple(hashes), tuple(reply_of(each.model_dump()) for each in read.replies))


def reply_of(given: Mapping[str, Any]) -> Reply:
    """Build a reply of its recorded fields, with text that a table can hold."""
    texts = {name: storable(value) for name, value in given.items() if isinstance(value, str)}
    return Reply(**{**given, **texts})
