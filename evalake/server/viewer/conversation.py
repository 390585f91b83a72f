"""What was asked about a sample and answered, call by call, out of the ledger."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel

from evalake.contracts.contract import Row
from evalake.contracts.tables import CALL_FAILURES, CALLS
from evalake.contracts.tables.runs import JUDGE_CALL, SUBJECT_CALL
from evalake.core.errors import EvalakeError, ProviderError
from evalake.models.again import ask_again
from evalake.models.request import Failure, Reply, Request
from evalake.sdk import Exchange, Item, Sample
from evalake.sdk.json_in_text import json_object, split_thinking
from evalake.server.scoring.views import Micros, micros
from evalake.server.settings import NotFoundError
from evalake.server.viewer.access import ConfigurationHere, ItemId, LakeHere
from evalake.server.viewer.run_index import RunIndex
from evalake.storage.lake import Lake
from evalake.storage.ledger import Key, key_of
from evalake.tasks.converse import exchange_of, going_on

ANSWER_NAMES = ("model", "judge", "prompt_type", "replicate")  # of an answer, among those to one sample
MOST_TURNS = 8  # of a conversation beyond what the manifest tells


class ToolCall(BaseModel):
    """A tool that a model wants called; `arguments` are JSON where the model wrote JSON."""

    name: str
    arguments: str


class Message(BaseModel):
    """One message of a request."""

    role: str
    content: str
    tool_calls: list[ToolCall] = []


class RequestView(BaseModel):
    """A request as it was sent, and the commands that ask it again; `why` says why there are none."""

    request: str
    curl: str | None = None
    python: str | None = None
    why: str | None = None


class EarlierReply(BaseModel):
    """Another reply to the same request: of another repeat, or one that came too late to be the reply."""

    replicate: int
    run_id: str
    answered_at_us: Micros
    text: str | None
    reply_revision: int
    is_the_reply: bool  # of its repeat and revision
    is_replaced: bool  # by a newer revision, which was asked for explicitly


class CallView(BaseModel):
    """A request and what came back for it."""

    call_id: str
    by: str  # subject or judge
    model: str
    model_reported: str | None
    prompt_hash: str
    messages: list[Message]  # none where the request was never rendered, as of imported results
    parameters: dict[str, Any]
    text: str | None  # the reply as it came; null where none came
    answer: str | None  # the reply without its thinking
    thinking: str | None
    refusal: str | None
    tool_calls: list[ToolCall]
    finish_reason: str | None
    error_kind: str | None
    error: str | None
    attempts: int
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    failed_cost_usd: float | None
    latency_ms: float | None
    queue_ms: float | None
    waited_ms: float | None
    connect_ms: float | None
    first_byte_ms: float | None
    concurrency: int | None
    origin: str
    run_id: str
    from_ledger: bool  # another run had asked
    answered_at_us: Micros | None
    others: list[EarlierReply]


class Asked:
    """What was asked about some items and answered: rows of the ledger, and of calls that were given up on."""

    def __init__(self, lake: Lake, run_id: str, manifest: Sequence[Row]) -> None:
        self._lake = lake
        self._rows: dict[str, list[Row]] = {}
        hashes = {row[name] for row in manifest for name in ("prompt_hash", "judge_hash") if row[name] is not None}
        self._read(hashes)
        failed = lake.frame(CALL_FAILURES).filter(pl.col("run_id") == run_id)
        failures = failed.filter(pl.col("prompt_hash").is_in(sorted(hashes))).collect()
        self.failures = {(row["prompt_hash"], row["replicate"]): row for row in failures.iter_rows(named=True)}

    def rows(self, prompt_hash: str) -> Sequence[Row]:
        """Read all replies to a request: the highest revision first, and of one the reply that was committed first."""
        if prompt_hash not in self._rows:
            self._read([prompt_hash])
        return self._rows[prompt_hash]

    def reply(self, key: Key) -> Row | None:
        """Find the reply to a call; None where there is none."""
        return next((row for row in self.rows(key.prompt_hash) if key_of(row) == key), None)

    def _read(self, hashes: Iterable[str]) -> None:
        wanted = sorted(hashes)
        self._rows.update({prompt_hash: [] for prompt_hash in wanted})
        calls = self._lake.frame(CALLS).filter(pl.col("prompt_hash").is_in(wanted))
        for row in (
            calls.sort(-pl.col("reply_revision"), "ledger_version", "answered_at").collect().iter_rows(named=True)
        ):
            self._rows[row["prompt_hash"]].append(row)


class Conversations:
    """The conversations about one sample in one run, out of the ledger.

    The manifest names the first calls. What follows them (a reminder, a repair) is found by asking the suite what it
    would have asked next, with the parameters of the calls before.
    """

    def __init__(self, asked: Asked, index: RunIndex, sample: Sample, options: Mapping[str, Any]) -> None:
        self._asked, self._index, self._sample, self._options = asked, index, sample, options
        self._views: dict[str, CallView] = {}

    def of(self, entry: Row) -> list[str]:
        """List the ids of the calls of one conversation, in order."""
        calls: list[str] = []
        exchanges: list[Exchange] = []
        for columns in (SUBJECT_CALL, JUDGE_CALL):
            if entry[columns["prompt_hash"]] is None:
                continue
            key = key_of(entry, columns)
            row = self._asked.reply(key)
            if row is not None:
                exchanges.append(exchange_of(row))
            elif failure := self._asked.failures.get(key[:2]):
                outcome = Failure(failure["kind"], failure["message"], failure["attempts"], failure["latency_ms"])
                exchanges.append(Exchange(key.prompt_hash, outcome, endpoint=key.endpoint))
            else:
                return calls  # not asked yet, or a panel's, which makes no call
            calls.append(self._view(key, len(calls)))
        if self._index.run["origin"] != "import":
            calls += self._following(entry, exchanges)
        return calls

    def calls(self) -> list[CallView]:
        """List all calls whose ids `of` has returned."""
        return list(self._views.values())

    def _following(self, entry: Row, exchanges: list[Exchange]) -> list[str]:
        """Find the calls after those that the manifest names."""
        item = Item(self._sample, *(entry[name] for name in ANSWER_NAMES))
        calls: list[str] = []
        while len(calls) < MOST_TURNS and all(isinstance(each.outcome, Reply) for each in exchanges):
            try:
                request = self._index.suite.conversation.next_request(item, exchanges, self._options)
            except EvalakeError:
                break  # no judge of that name is asked any more
            if request is None:
                break
            prompt_hash = self._as_asked(request, exchanges).prompt_hash
            key = Key(prompt_hash, entry["replicate"], exchanges[-1].endpoint)
            if (row := self._asked.reply(key)) is None:
                break
            calls.append(self._view(key, len(exchanges)))
            exchanges.append(exchange_of(row))
        return calls

    def _as_asked(self, request: Request, exchanges: Sequence[Exchange]) -> Request:
        """Let the request go on from what its model was asked before in this conversation."""
        for exchange in reversed(exchanges):
            rows = self._asked.rows(exchange.prompt_hash)
            if rows and rows[0]["model"] == request.model:
                return going_on(request, json_object(rows[0]["request"]) or {})
        return request

    def _view(self, key: Key, number: int) -> str:
        call_id = f"{key.prompt_hash}-{key.replicate}"
        if call_id in self._views:
            return call_id
        by_subject = number == 0 and self._index.suite.conversation.asks_subject
        row = self._asked.reply(key)
        whose = {"call_id": call_id, "by": "subject" if by_subject else "judge", "prompt_hash": key.prompt_hash}
        if row is None:
            failure = self._asked.failures[key[:2]]
            self._views[call_id] = _failed_call(whose, failure)
        else:
            self._views[call_id] = _answered_call(
                whose, row, self._asked.rows(key.prompt_hash), self._index.run["run_id"]
            )
        return call_id


def _answered_call(whose: Row, row: Row, same_prompt: Sequence[Row], run_id: str) -> CallView:
    answer, thinking = (None, "") if row["response"] is None else split_thinking(row["response"])
    thoughts = "\n\n".join(filter(None, (row["reasoning"], thinking)))
    fields = {name: row[name] for name in CallView.model_fields if name in row and name != "tool_calls"}
    first = {(key_of(each), each["reply_revision"]): each for each in reversed(same_prompt)}
    newest = {key_of(each): each["reply_revision"] for each in reversed(same_prompt)}
    others = [
        EarlierReply(
            replicate=each["replicate"],
            run_id=each["run_id"],
            answered_at_us=micros(each["answered_at"]) or 0,
            text=each["response"],
            reply_revision=each["reply_revision"],
            is_the_reply=first[key_of(each), each["reply_revision"]] is each,
            is_replaced=each["reply_revision"] < newest[key_of(each)],
        )
        for each in same_prompt
        if each is not row
    ]
    request = json_object(row["request"]) or {}
    return CallView(
        **{**fields, **whose},
        messages=_messages(request),
        tool_calls=tool_calls(_decoded_list(row["tool_calls"])),
        parameters={name: request[name] for name in request.keys() - {"model", "messages"}}
        if "messages" in request
        else {},
        text=row["response"],
        answer=answer,
        thinking=thoughts or None,
        error=None,
        from_ledger=row["run_id"] != run_id,
        answered_at_us=micros(row["answered_at"]),
        others=others,
    )


def _failed_call(whose: Row, row: Row) -> CallView:
    fields = {name: value for name, value in row.items() if name in CallView.model_fields}
    failed: dict[str, Any] = {
        "messages": [],
        "tool_calls": [],
        "parameters": {},
        "error_kind": row["kind"],
        "error": row["message"],
        "origin": "call",
        "from_ledger": False,
        "answered_at_us": micros(row["failed_at"]),
        "others": [],
    }
    return CallView(**{**dict.fromkeys(CallView.model_fields), **fields, **failed, **whose})


def request_view(lake: LakeHere, configuration: ConfigurationHere, prompt_hash: ItemId) -> RequestView:
    """Read a request of the ledger. Raises NotFoundError where it has none of that hash."""
    rows = lake.frame(CALLS).filter(pl.col("prompt_hash") == prompt_hash).select("request").head(1).collect()
    if rows.is_empty():
        raise NotFoundError("the ledger has no such request")
    text = rows.item()
    request = json_object(text) or {}
    if "messages" not in request:
        return RequestView(request=text, why="The request was recorded elsewhere: its text is not here.")
    try:
        return RequestView(request=text, **ask_again(request, configuration)._asdict())
    except ProviderError as error:
        return RequestView(request=text, why=str(error))


def _messages(request: Mapping[str, Any]) -> list[Message]:
    messages = request.get("messages")
    if not isinstance(messages, list):
        return []
    return [
        Message(
            role=" ".join(str(each[name]) for name in ("role", "name") if each.get(name)),
            content="" if each.get("content") is None else _text(each["content"]),
            tool_calls=tool_calls(each.get("tool_calls")),
        )
        for each in messages
        if isinstance(each, Mapping)
    ]


def tool_calls(given: Any) -> list[ToolCall]:
    """Read calls of tools in OpenAI's form; one in another form is kept whole, under no name."""
    if not isinstance(given, list):
        return []
    functions = [each.get("function") if isinstance(each, Mapping) else None for each in given]
    return [
        ToolCall(name=str(function.get("name", "")), arguments=_text(function.get("arguments", "")))
        if isinstance(function, Mapping)
        else ToolCall(name="", arguments=_text(each))
        for each, function in zip(given, functions, strict=True)
    ]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _decoded_list(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return [text]
