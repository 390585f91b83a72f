"""Converse: each item's conversation with the models, as its requests and the replies in the ledger make it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from evalake.contracts.contract import Row
from evalake.contracts.tables import CALLS
from evalake.core.configuration import Configuration
from evalake.models.cost import taken
from evalake.models.endpoints import endpoint_of
from evalake.models.request import Failure, Reply, Request, parameters_of, revision_of
from evalake.sdk import Converse, Exchange, Item, Suite
from evalake.storage.ledger import Key, LedgerIndex
from evalake.tasks.runtime.context import RunContext

# The parameters of judges: the configuration of the model overrides the suite's declaration.


def judge_parameters(suite: Suite, judge: str, configuration: Configuration) -> dict[str, Any]:
    """List the parameters of the first request to a judge about an item, beside those that the suite's prompt sets."""
    configured = configuration.parameters(judge)
    if not suite.conversation.judge_parameters or not configuration.takes_suite_parameters(judge):
        return configured
    return {**taken(configuration.real_model(judge), suite.conversation.judge_parameters, configured), **configured}


def seeded_once(item: Item, parameters: dict[str, Any]) -> dict[str, Any]:
    """Remove the seed from repeats of a judge's request, because the same seed would give copies.

    The first request keeps it, so that later repeats do not pay for that request again. All requests of a canary are
    repeats: their replicates are numbered by the day.
    """
    return parameters if item.replicate == 0 else {name: v for name, v in parameters.items() if name != "seed"}


# The columns of a reply in the ledger, beside its text
REPLY_COLUMNS = tuple(name for name in Reply.__dataclass_fields__ if name in CALLS.row.model_fields)
assert ("text", *REPLY_COLUMNS) == tuple(Reply.__dataclass_fields__)  # in whose order a reply is made of its row
_of_row = itemgetter("response", *REPLY_COLUMNS)


@dataclass(slots=True)
class Conversation:
    """An item's conversation so far."""

    item: Item
    first_hash: str = ""
    answered: list[Exchange] = field(default_factory=list)
    next_hash: str = ""  # of the request that `replay_from_ledger` found no reply to
    next_model: str = ""  # the real one, whom it asks
    next_endpoint: str = ""  # of that model
    next_revision: int = 0  # of the reply to it
    is_listed: bool = False  # whether its item is on the manifest
    converse: Converse | None = None  # None: as the suite asks
    is_urgent: bool = False  # its next call is made at once, even to a model with batch jobs
    waits: bool = False  # for a batch job, with its next call
    given_by: tuple[str, str] | None = None  # whose replies alone answer the first call, and others
    fallback_for: str | None = None  # the judge that was asked first, whose provider could not answer
    is_passed_on: bool = False  # whether a fallback judges its item

    @property
    def first_endpoint(self) -> str:
        """The endpoint of its first call."""
        return self.answered[0].endpoint if self.answered else self.next_endpoint

    @property
    def next_key(self) -> Key:
        """The key of the call that it needs to go on."""
        return Key(self.next_hash, self.item.replicate, self.next_endpoint)

    def wait_for(self, request: Request, key: Key, index: LedgerIndex) -> None:
        """Note the call that a batch job is to make next."""
        self.waits, self.next_model = True, request.model
        self.next_hash, self.next_endpoint, self.next_revision = key.prompt_hash, key.endpoint, index.next_revision(key)

    def again(self) -> "Conversation":
        """Copy it as it is, so that the copy goes on."""
        return replace(self, answered=list(self.answered))

    @property
    def failed(self) -> bool:
        """Whether its last call was given up on."""
        return bool(self.answered) and isinstance(self.answered[-1].outcome, Failure)

    @property
    def is_refused(self) -> bool:
        """Whether it ended because the run's ceiling was reached, and not by any fault."""
        last = self.answered[-1].outcome if self.answered else None
        return isinstance(last, Failure) and last.kind == "budget"


@dataclass(frozen=True, slots=True)
class Replay:
    """Conversations after their replay from the ledger: ended, or in need of a call."""

    ended: list[Conversation] = field(default_factory=list)
    unanswered: list[Conversation] = field(default_factory=list)


def replay_from_ledger(
    context: RunContext, conversations: Sequence[Conversation], index: LedgerIndex, *, own_replies: bool = False
) -> Replay:
    """Answer calls from the ledger, wave by wave.

    Args:
        context: The run that asks.
        conversations: The conversations, which are carried on in place.
        index: The index of the ledger.
        own_replies: Whether a reply that this run bought precedes an earlier one of another run.

    Returns:
        The conversations, in the order of the waves that ended them.
    """
    replay = Replay()
    wave = list(conversations)
    while wave:
        asked = [(conversation, _next_keys(context, conversation)) for conversation in wave]
        rows = index.fetch([key for _, keys in asked for key in keys], context.run_id if own_replies else None)
        wave = []
        for conversation, keys in asked:
            if not keys:
                replay.ended.append(conversation)
            elif (row := first_of(rows, keys)) is None:
                conversation.next_revision = index.next_revision(keys[0])
                replay.unanswered.append(conversation)
            else:
                conversation.answered.append(answered_by(row, context))
                wave.append(conversation)
    return replay


def is_judges_turn(context: RunContext, conversation: Conversation) -> bool:
    """Tell whether the next call of a conversation that goes on asks its judge."""
    asks_subject = context.suite.conversation.asks_subject
    return conversation.item.judge is not None and bool(conversation.answered or not asks_subject)


def refused(conversation: Conversation) -> Conversation:
    """End a conversation whose next call the run's ceiling forbids."""
    failure = Failure("budget", "not asked: the run's ceiling is reached", 0)
    return replace(conversation, answered=[*conversation.answered, given_up(conversation, failure)])


def given_up(conversation: Conversation, failure: Failure) -> Exchange:
    """Build the exchange of a conversation's failed call."""
    return Exchange(conversation.next_hash, failure, endpoint=conversation.next_endpoint)


def next_request(context: RunContext, conversation: Conversation) -> Request | None:
    """Build the conversation's next request, to the real model and with its configuration; None where it is over."""
    if conversation.failed:
        return None
    converse = conversation.converse or context.suite.conversation.next_request
    request = converse(context.fenced(conversation.item), conversation.answered, context.options)
    if request is None:
        return None
    configured, name, suite = context.configuration, request.model, context.suite
    revision = configured.revision(name) or revision_of(configured.real_model(name), suite.conversation.baselines)
    added: Mapping[str, Any] = {}
    if is_judges_turn(context, conversation):
        added = seeded_once(conversation.item, judge_parameters(suite, name, configured))
    elif name in configured.models:
        added = configured.parameters(name)
    asked_plainly = not added and name not in configured.models and revision is None
    if asked_plainly and not suite.conversation.streams and not suite.conversation.caches_prompts:
        return request
    return replace(
        request,
        model=configured.real_model(name),
        parameters={**request.parameters, **added},
        revision=revision,
        stream=configured.is_on("stream", name, suite.conversation.streams),
        cache_prompt=configured.is_on("cache_prompt", name, suite.conversation.caches_prompts),
    )


def going_on(request: Request, asked: Mapping[str, Any]) -> Request:
    """Replace a request's beginning by the ledger's request before it: its messages and parameters.

    The suite's prompts may have changed since, or the fence of the item is unknown.
    """
    before, turns = tuple(asked.get("messages", ())), request.messages
    if len(turns) > len(before) and turns[len(before)]["role"] == "assistant":
        turns = (*before, *turns[len(before) :])
    return replace(request, messages=turns, parameters=parameters_of(asked), revision=asked.get("revision"))


def keys_of(context: RunContext, request: Request, replicate: int) -> list[Key]:
    """List the keys whose replies answer a request: first its own, then adopted ones."""
    answering = endpoint_of(request.model, context.configuration).answering
    return [Key(request.prompt_hash, replicate, endpoint) for endpoint in answering]


def _next_keys(context: RunContext, conversation: Conversation) -> list[Key]:
    """List the keys that answer the conversation's next request; none where it is over."""
    if not conversation.next_model or conversation.answered:  # else made already, as the conversation was planned
        request = next_request(context, conversation)
        if request is None:
            return []
        conversation.next_hash, conversation.next_model = request.prompt_hash, request.model
        if not conversation.answered:
            conversation.first_hash = request.prompt_hash
    answering = endpoint_of(conversation.next_model, context.configuration).answering
    if conversation.given_by is not None:
        answering = (conversation.given_by[bool(conversation.answered)],)
    conversation.next_endpoint = answering[0]
    return [Key(conversation.next_hash, conversation.item.replicate, endpoint) for endpoint in answering]


def first_of(rows: Mapping[Key, Row], keys: Sequence[Key]) -> Row | None:
    """Find the row of the first key that has one."""
    return next((rows[key] for key in keys if key in rows), None)


def answered_by(row: Row, context: RunContext) -> Exchange:
    """Build the exchange of a row of the ledger, its request and its reply, as this run sees it."""
    return exchange_of(row, from_ledger=row["run_id"] != context.run_id)


def exchange_of(row: Row, *, from_ledger: bool = True) -> Exchange:
    """Build the exchange of a row of the ledger."""
    imported = row["origin"] == "import"
    return Exchange(row["prompt_hash"], reply_of(row), from_ledger, row["endpoint"], row["reply_revision"], imported)


def reply_of(row: Row) -> Reply:
    """Build the reply that a row of the ledger keeps."""
    return Reply(*_of_row(row))


def reply_row(request: Request, key: Key, revision: int, reply: Reply, run_id: str) -> Row:
    """Build the row of CALLS of a request that was sent, all but the version that its commit gives it."""
    return call_row(
        reply, key, request.model, request.canonical.decode(), revision=revision, origin="call", run_id=run_id
    )


def call_row(reply: Reply, key: Key, model: str, request: str, *, revision: int, origin: str, run_id: str) -> Row:
    """Build a reply's row of CALLS, all but the version that its commit gives it; `request` is in JSON."""
    return {
        **{name: getattr(reply, name) for name in REPLY_COLUMNS},
        **key._asdict(),
        "reply_revision": revision,
        "response": reply.text,
        "model": model,
        "request": request,
        "origin": origin,
        "run_id": run_id,
        "answered_at": datetime.now(UTC),
    }
