"""Converse: walk each item's conversation, from the ledger as far as it reaches, and by calls from there on."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter

from providers.request import Failure, Reply, Request
from storage.ledger import Key, LedgerIndex, Row
from suites.base import Answered, Item
from tasks.context import RunContext
from tasks.resources import client_of, ledger_writer

REPLY_COLUMNS = tuple(name for name in Reply.__dataclass_fields__ if name != "text")
_REPLY = itemgetter("response", *REPLY_COLUMNS)  # in the order of Reply's fields


@dataclass(slots=True)
class Dialogue:
    """An item's conversation so far."""

    item: Item
    first_hash: str = ""
    answered: list[Answered] = field(default_factory=list)
    next_hash: str = ""  # of the request that `settle` found no reply to

    @property
    def failed(self) -> bool:
        """Whether its last call was given up on."""
        return bool(self.answered) and isinstance(self.answered[-1].outcome, Failure)


def settle(context: RunContext, dialogues: Sequence[Dialogue], *indexes: LedgerIndex) -> list[Dialogue]:
    """Answer what the ledger can answer, wave by wave; returns the dialogues that need a call to go on.

    `indexes` are of the ledger, each of other files of it, the oldest first.
    """
    open_dialogues: list[Dialogue] = []
    wave = list(dialogues)
    while wave:
        asked = [(dialogue, key) for dialogue in wave if (key := _next_key(context, dialogue)) is not None]
        found = _fetch([key for _, key in asked], indexes)
        wave = []
        for dialogue, key in asked:
            if (row := found.get(key)) is None:
                open_dialogues.append(dialogue)
            else:
                dialogue.answered.append(answered_by(row, context))
                wave.append(dialogue)
    return open_dialogues


def call(
    context: RunContext,
    dialogues: Sequence[Dialogue],
    *indexes: LedgerIndex,
    on_end: Callable[[], None] = lambda: None,
) -> None:
    """Walk every dialogue to its end, all at once; on return each reply is committed to the ledger.

    A dialogue ends early at a call that is given up on. What `indexes` hold is not called; `on_end` is told of each
    dialogue that has ended.
    """
    writer = ledger_writer(context.lake)
    asked: dict[Key, asyncio.Future[Answered]] = {}
    open_dialogues = settle(context, dialogues, *indexes)
    for _ in range(len(dialogues) - len(open_dialogues)):
        on_end()

    async def answer(request: Request, replicate: int) -> Answered:
        outcome = await client.call(request, replicate)
        if isinstance(outcome, Reply):
            writer.put(reply_row(request, replicate, outcome, context.run_id))
        return Answered(request.prompt_hash, outcome)

    async def recall_or_answer(request: Request, replicate: int) -> Answered:
        known = await _recall(context, (request.prompt_hash, replicate), indexes)
        return known or await answer(request, replicate)

    async def walk(dialogue: Dialogue) -> None:
        ask = answer  # `settle` has just looked for its first request
        while (request := next_request(context, dialogue)) is not None:
            key = (request.prompt_hash, dialogue.item.replicate)
            if key not in asked:
                asked[key] = asyncio.ensure_future(ask(request, dialogue.item.replicate))
            dialogue.answered.append(await asked[key])
            ask = recall_or_answer
        on_end()

    with client_of(context) as client:
        try:
            client.run([walk(dialogue) for dialogue in open_dialogues])
        finally:
            writer.flush()


def next_request(context: RunContext, dialogue: Dialogue) -> Request | None:
    """What the dialogue asks next, with the parameters configured for its model; None where it is over."""
    if dialogue.failed:
        return None
    request = context.suite.converse(dialogue.item, dialogue.answered, context.options)
    if request is None or not (configured := context.configuration.model(request.model).parameters):
        return request
    return replace(request, parameters={**request.parameters, **configured})


def _next_key(context: RunContext, dialogue: Dialogue) -> Key | None:
    request = next_request(context, dialogue)
    if request is None:
        return None
    dialogue.next_hash = request.prompt_hash
    if not dialogue.answered:
        dialogue.first_hash = request.prompt_hash
    return request.prompt_hash, dialogue.item.replicate


def _fetch(keys: Sequence[Key], indexes: Sequence[LedgerIndex]) -> dict[Key, Row]:
    """The rows that answer the keys; where several indexes know one, the oldest."""
    found: dict[Key, Row] = {}
    for index in indexes:
        found = index.fetch(keys) | found
    return found


async def _recall(context: RunContext, key: Key, indexes: Sequence[LedgerIndex]) -> Answered | None:
    if not any(index.known([key]) for index in indexes):
        return None
    row = (await asyncio.to_thread(_fetch, [key], indexes)).get(key)
    return None if row is None else answered_by(row, context)


def answered_by(row: Row, context: RunContext) -> Answered:
    """The request that a row of the ledger answers, with its reply, as this run sees it."""
    return Answered(row["prompt_hash"], reply_of(row), from_ledger=row["run_id"] != context.run_id)


def reply_of(row: Row) -> Reply:
    """The reply that a row of the ledger keeps."""
    return Reply(*_REPLY(row))


def reply_row(request: Request, replicate: int, reply: Reply, run_id: str) -> Row:
    """A reply as a row of CALLS, all but the version that its commit gives it."""
    return {
        **{name: getattr(reply, name) for name in REPLY_COLUMNS},
        "response": reply.text,
        "prompt_hash": request.prompt_hash,
        "replicate": replicate,
        "model": request.model,
        "request": request.canonical.decode(),
        "origin": "call",
        "run_id": run_id,
        "answered_at": datetime.now(UTC),
    }
