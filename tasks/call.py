"""Call: carry conversations on by calls to models, each made once for all that ask it."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal, Self

from evalake.contracts.tables import CALLS
from evalake.core.errors import ProviderError
from evalake.models.attempts import CallsEndedError, WithoutSlot
from evalake.models.client import Client
from evalake.models.cost import beyond_context
from evalake.models.endpoints import provider_of
from evalake.models.request import Failure, Reply, Request
from evalake.sdk import Exchange
from evalake.storage.lake import Lake
from evalake.storage.ledger import Key, LedgerIndex
from evalake.storage.objects import require_write_access
from evalake.storage.reservations import Claims
from evalake.tasks.converse import (
    Conversation,
    answered_by,
    first_of,
    is_judges_turn,
    keys_of,
    next_request,
    replay_from_ledger,
    reply_row,
)
from evalake.tasks.runtime.budget import Spending
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import RunOverError, budget_of, client_of, is_over, lease_of, ledger_writer
from evalake.tasks.runtime.runs import OVERTAKEN
from evalake.tasks.runtime.server import shared_slot

Turn = Literal["subject", "judge"]

KEEP_SECONDS = 1.0  # between two signs that calls of this process go on
LOOK_SECONDS = 0.5  # between two looks whether another process still claims a call


def recall_or_call(context: RunContext, conversations: Sequence[Conversation], index: LedgerIndex) -> None:
    """Execute every conversation, first from the ledger, then by calls.

    Raises as `call` does, and LakeError before the first call where the lake could not keep its reply.
    """
    if unanswered := replay_from_ledger(context, conversations, index).unanswered:
        require_write_access(context.lake)
        call(context, unanswered, index)


def call(
    context: RunContext,
    conversations: Sequence[Conversation],
    index: LedgerIndex,
    *,
    claimed: "Claimed | None" = None,
    on_end: Callable[[], None] = lambda: None,
    turn: Turn | None = None,
) -> None:
    """Execute conversations that need a call, all at once; on return each reply is in the ledger.

    A failed call ends its conversation; a call that is left to a batch job marks it. The caller has looked up the first
    calls, so they are made at once; the index is searched for later ones, and read again for a call without a claim
    in `claimed` where other processes ask, too. `on_end` runs for each conversation that has ended. Raises RunOverError
    where the run is stopped, after its running calls have ended. With `turn`, only that part is walked: the subject's,
    or the judge's.
    """
    with client_of(context) as client:
        calls = _Calls(context, index, client, claimed, turn)
        try:
            ended = client.run([calls.carry_on(conversation, on_end) for conversation in conversations])
            if calls.budget is not None:
                client.run([calls.budget.rest()])
        except ProviderError as error:
            if is_over(context):  # the running calls were cancelled
                raise RunOverError(f"the run {context.run_id} is over: {error}") from error
            raise
        finally:
            calls.writer.flush()
    if left := ended.count(False):
        raise RunOverError(
            f"the run {context.run_id} was stopped: {left} of {len(conversations)} items are left for later"
        )


class _Calls:
    """The calls that some conversations need, while the run's client is in use."""

    def __init__(
        self, context: RunContext, index: LedgerIndex, client: Client, claimed: "Claimed | None", turn: Turn | None
    ) -> None:
        self._context, self._index, self._client = context, index, client
        self._claimed, self._turn = claimed, turn
        self._newest = NewestIndex(context.lake, index)
        self._lease = lease_of(context)
        self._asked: dict[Key, asyncio.Future[Exchange | None]] = {}
        self._asking: set[Spending] = set()
        self._keeping: asyncio.Task[None] | None = None
        self.budget = budget_of(context)
        self.writer = ledger_writer(context.lake)

    async def carry_on(self, conversation: Conversation, on_end: Callable[[], None]) -> bool:
        """Execute a conversation until no call may begin; returns whether it has ended."""
        find = self._recall_or_answer if self._turn == "judge" else self._answer
        try:
            while (request := next_request(self._context, conversation)) is not None:
                if self._turn == "subject" and is_judges_turn(self._context, conversation):
                    return True
                key = keys_of(self._context, request, conversation.item.replicate)[0]
                if key not in self._asked:
                    may_wait = request.model in self._context.batched and not conversation.is_urgent
                    self._asked[key] = asyncio.ensure_future((self._recall if may_wait else find)(request, key))
                if (exchange := await self._asked[key]) is None:
                    conversation.wait_for(request, key, self._index)
                    return True
                conversation.answered.append(exchange)
                conversation.is_urgent, find = False, self._recall_or_answer
        except CallsEndedError:
            return False
        on_end()
        return True

    async def _recall(self, request: Request, key: Key) -> Exchange | None:
        """Look a call up in the ledger as it was when the conversations began."""
        return await self._recall_from(self._index, request, key)

    async def _recall_from(self, index: LedgerIndex, request: Request, key: Key) -> Exchange | None:
        keys = keys_of(self._context, request, key.replicate)
        if not index.known(keys):
            return None
        row = first_of(await asyncio.to_thread(index.fetch, keys), keys)
        return None if row is None else answered_by(row, self._context)

    async def _recall_or_answer(self, request: Request, key: Key) -> Exchange | None:
        return await self._recall(request, key) or await self._answer(request, key)

    async def _answer(self, request: Request, key: Key) -> Exchange | None:
        """Make a call, unless another process has made it since the last look at the ledger."""
        claims = self.writer.claims
        limits = self._context.configuration.limits(provider_of(request.model))
        had_looked = self._claimed is not None and self._claimed.hand_over(key)
        waited = not had_looked and await claim(claims, key, self._client, limits.timeout_seconds)
        is_put = False
        try:
            if waited or (not had_looked and claims.are_shared()):
                found = await self._recall_from(await self._newest.now(), request, key)
                if found is not None:
                    return found
            exchange = await self._ask(request, key)
            is_put = isinstance(exchange.outcome, Reply)
            return exchange
        finally:
            if not is_put:  # else its commit ends the claim
                claims.release([key])

    @contextmanager
    def _keeping_claims(self, spending: Spending) -> Iterator[None]:
        """Show other processes while calls go on, however long, that this one does not stand still."""
        self._asking.add(spending)
        self._keeping = self._keeping or asyncio.ensure_future(self._keep_claims())
        try:
            yield
        finally:
            self._asking.remove(spending)
            if not self._asking:
                self._keeping.cancel()
                self._keeping = None

    async def _keep_claims(self) -> None:
        while True:
            # One that waits for room below a ceiling may wait for a process that waits for its claim
            if self.budget is None or any(each.is_admitted for each in self._asking):
                self.writer.claims.keep()
            await asyncio.sleep(KEEP_SECONDS)

    async def _ask(self, request: Request, key: Key) -> Exchange:
        """Ask the model, and put its reply into the ledger."""
        context, budget = self._context, self.budget
        spending, revision = Spending(request), self._index.next_revision(key)
        if (too_long := beyond_context(request, context.configuration.model(request.model).context)) is not None:
            return Exchange(request.prompt_hash, Failure("context_length", too_long, 0), endpoint=key.endpoint)
        try:
            async with shared_slot(context.configuration.limits(provider_of(request.model)).prefect_limit):
                with self._keeping_claims(spending):
                    outcome = await self._client.call(request, key.replicate, partial(self._admit, spending))
        except BaseException:
            if budget is not None:
                budget.give_up(spending)
            raise
        if isinstance(outcome, Reply):
            self.writer.put(reply_row(request, key, revision, outcome, context.run_id))
        if budget is not None:
            budget.end(spending, outcome)
        return Exchange(request.prompt_hash, outcome, endpoint=key.endpoint, revision=revision)

    async def _admit(self, spending: Spending, failed_cost_usd: float, without_slot: WithoutSlot) -> None:
        """Admit an attempt while the run goes on, as far as its ceiling allows."""
        if not await self._lease.holds():
            raise CallsEndedError(OVERTAKEN)
        if self.budget is not None:
            await self.budget.admit(spending, failed_cost_usd, without_slot)


# Claims: of all processes that need a call, one makes it.


class Claimed:
    """Claims on the next calls of conversations, for a `with` block: a look at the ledger in it holds for these calls.

    Another process asks the others, and may have claimed them since the ledger was last read.
    """

    def __init__(self, context: RunContext, conversations: Sequence[Conversation]) -> None:
        self._claims, self._keys = ledger_writer(context.lake).claims, {each.next_key for each in conversations}

    def __enter__(self) -> Self:
        self._keys = {key for key in self._keys if self._claims.take(key)}
        return self

    def __exit__(self, *_: object) -> None:
        self.keep(())

    def keep(self, conversations: Sequence[Conversation]) -> None:
        """End the claims on calls of other conversations, whose replies were found."""
        kept = self._keys & {each.next_key for each in conversations}
        self._claims.release(self._keys - kept)
        self._keys = kept

    def hand_over(self, key: Key) -> bool:
        """Leave a claim to the call of this key, which ends it; returns whether there was one."""
        has = key in self._keys
        self._keys.discard(key)
        return has


async def claim(claims: Claims, key: Key, client: Client, patience_seconds: float) -> bool:
    """Claim a call once no other process asks it, and tell whether that took a wait.

    After a wait without a sign from any process, for `patience_seconds`, the call is asked all the same: the process
    that has claimed it stands still. Raises CallsEndedError where the client's calls have ended meanwhile.
    """
    waited = False
    while not claims.take(key) and not (waited and claims.quiet_seconds() > patience_seconds):
        waited = True
        client.require_going_on()
        await asyncio.sleep(LOOK_SECONDS)
    return waited


class NewestIndex:
    """The newest index of the ledger; those who need it at once share one reading."""

    def __init__(self, lake: Lake, index: LedgerIndex) -> None:
        self._lake, self._index = lake, index
        self._reading, self._read_from = asyncio.Lock(), 0.0

    async def now(self) -> LedgerIndex:
        """Return an index with every commit before this call."""
        called = time.monotonic()
        async with self._reading:
            if self._read_from <= called:
                self._read_from = time.monotonic()
                self._index = await asyncio.to_thread(lambda: self._index.extended(self._lake.ensure(CALLS)))
            return self._index
