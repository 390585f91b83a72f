"""Keeps a run below its ceiling: a call starts only if spending and all running calls' worst prices stay within it.

Every process of the run reserves a part of the ceiling (`storage/reservations.py`), and admits calls within it. A
process without room reserves more. Where the ceiling has no more, calls wait until other processes release a part, and
are refused when none can.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from evalake.core.configuration import Configuration
from evalake.core.errors import EvalakeError
from evalake.models.attempts import WithoutSlot
from evalake.models.cost import input_tokens, most_usd
from evalake.models.failures import AttemptFailed
from evalake.models.request import Failure, Reply, Request
from evalake.storage.lake import Lake
from evalake.storage.reservations import Amount, BudgetState, Ceiling, Reservation, reserve

PART = 4  # a process reserves a quarter of the free part at a time
LOOK_SECONDS = 1.0  # between two searches for released parts
BEAT_SECONDS = 15.0
STALE_SECONDS = 30.0  # a holder without a heartbeat for so long admits no call before the next
PATIENCE_SECONDS = 60.0  # a holder without a heartbeat for so long is dead, and its reservation is released

NOTHING = Amount()

logger = logging.getLogger("evalake.budget")


@dataclass(eq=False, slots=True)
class Spending:
    """One call, and the amount that it holds: the worst price of its attempt, and the cost of failed attempts."""

    request: Request
    held: Amount = NOTHING
    is_admitted: bool = False  # an attempt is running, or a retry follows
    is_counted: bool = False  # as a call of the run


class Budget:
    """The part of a run's ceiling that one process holds. Only `abandon` may be called outside its event loop."""

    def __init__(
        self,
        lake: Lake,
        run_id: str,
        ceiling: Ceiling,
        configuration: Configuration,
        flush: Callable[[], None],
        longest: Mapping[str, int],
    ) -> None:
        """Share the ceiling of a run.

        Args:
            lake: The lake of the run.
            run_id: The run.
            ceiling: Its ceiling.
            configuration: Prices and defaults of the models.
            flush: Commits the replies so far to the ledger.
            longest: The longest known reply in output tokens, by model.
        """
        self._lake, self._run_id, self._ceiling, self._configuration = lake, run_id, ceiling, configuration
        self._flush = flush
        self._longest = dict(longest)
        self._provider_counts: dict[str, float] = {}  # by model: the provider's input tokens for one of ours
        self._holder = uuid4().hex
        self._open: set[Spending] = set()
        self._needs: list[Amount] = []  # of waiting calls
        self._landing = NOTHING  # of replies that may not be in the ledger yet
        self._outside = NOTHING  # all spending outside the ledger
        self._told_outside = NOTHING  # the part of it that is in our row
        self._lease = NOTHING
        self._others = NOTHING  # the others' reservations at the last renewal
        self._renewed_at = time.monotonic()
        self._seen: dict[str, tuple[int, float]] = {}  # by holder: its last heartbeat and our time of first seeing it
        self._begun = self._ended = 0  # renewals of the lease
        self._calls_ended = 0
        self._changed = asyncio.Event()  # set, and replaced, at the end of a renewal or a call
        self._no_room_for: Amount | None = None  # a need without room since the last renewal and the last ended call
        self._beating: asyncio.Task[None] | None = None

    async def admit(self, spending: Spending, failed_cost_usd: float, without_slot: WithoutSlot) -> None:
        """Hold the worst price of an attempt, and wait for room while other calls may release some.

        Raises AttemptFailed (budget) where no room can come.
        """
        need = self._ceiling.of(Amount(self._most_usd(spending.request), 0 if spending.is_counted else 1))
        # A waiting call holds only its spending, so that calls do not wait for each other for ever
        spending.held = self._ceiling.of(Amount(failed_cost_usd, 1 if spending.is_counted else 0))
        spending.is_admitted = False
        self._open.add(spending)
        self._needs.append(need)
        if spending.is_counted:
            self._make_room()
        try:
            await self._find_room(need, without_slot)
        finally:
            self._needs.remove(need)
        spending.held += need
        spending.is_admitted = spending.is_counted = True

    def end(self, spending: Spending, outcome: Reply | Failure) -> None:
        """Replace the held amount by the cost of the call, after its reply is with the ledger's writer."""
        failed = Amount(outcome.failed_cost_usd or 0.0)
        if isinstance(outcome, Failure):
            self._outside += self._ceiling.of(failed + Amount(calls=1 if spending.is_counted else 0))
        else:
            if outcome.cost_usd is None:  # without usage, count the worst price
                failed += Amount(spending.held.usd)
            self._outside += self._ceiling.of(failed)
            self._landing += self._ceiling.of(Amount(outcome.cost_usd or 0.0, 1))
            self._learn(spending.request, outcome)
        self._open.discard(spending)
        self._make_room()

    def give_up(self, spending: Spending) -> None:
        """Count the held amount of an interrupted call as spent, because its cost is unknown."""
        self._outside += spending.held
        self._open.discard(spending)
        self._make_room()

    async def rest(self) -> None:
        """Release the reservation while no call is running."""
        while self._begun > self._ended:
            await self._changed.wait()
        if not self._open and (self._lease != NOTHING or self._outside != self._told_outside):
            await self._renew(give_back=True)

    def abandon(self) -> None:
        """Release everything, after the event loop has ended."""
        if self._lease == NOTHING:
            return
        try:
            self._flush()
            reserve(self._lake, self._run_id, self._holder, lambda _: Reservation(NOTHING, self._outside))
        except EvalakeError as error:
            logger.warning("the reservation of the run %s is released only in a minute: %s", self._run_id, error)

    @property
    def _held(self) -> Amount:
        """The used part of the lease: running calls, and spending that the others do not know yet."""
        unknown = self._landing + self._outside - self._told_outside
        return sum((spending.held for spending in self._open), unknown)

    def _fits(self, need: Amount) -> bool:
        # A running renewal may shrink the lease
        return self._begun == self._ended and not self._is_stale() and (self._held + need).within(self._lease)

    def _is_stale(self) -> bool:
        return time.monotonic() - self._renewed_at > STALE_SECONDS

    async def _find_room(self, need: Amount, without_slot: WithoutSlot) -> None:
        is_known = self._no_room_for is not None and self._no_room_for.within(need)
        begun = self._begun - 1 if is_known else self._begun
        while not self._fits(need):
            if self._begun > self._ended:
                await self._changed.wait()
            elif self._ended <= begun or self._is_stale():  # no renewal has included this need
                await self._renew()
            elif self._others != NOTHING or any(spending.is_admitted for spending in self._open):
                self._no_room_for, before = need, self._calls_ended
                async with without_slot():  # the awaited call may be a retry that needs the slot
                    with suppress(TimeoutError):
                        async with asyncio.timeout(None if self._others == NOTHING else LOOK_SECONDS):
                            await self._changed.wait()
                    is_due = self._begun == self._ended and time.monotonic() - self._renewed_at >= LOOK_SECONDS
                    if self._calls_ended > before or (is_due and self._others != NOTHING):
                        begun = self._begun
            elif self._landing == NOTHING and self._outside == self._told_outside:
                raise AttemptFailed("budget", f"not asked: the run's ceiling of {self._ceiling} is reached")
            else:  # a call has ended during the renewal, which counted it twice
                begun = self._begun

    async def _renew(self, give_back: bool = False) -> None:
        """Write our spending, and reserve the needs of waiting calls.

        Without waiting calls, the reservation stays; `give_back` releases its unused part.
        """
        self._begun += 1
        landed, outside = self._landing, self._outside
        kept = sum((spending.held for spending in self._open), NOTHING)
        needs = list(self._needs)
        spare = NOTHING if give_back else self._lease - kept
        reserved = NOTHING

        def decide(state: BudgetState) -> Reservation:
            nonlocal reserved
            dead = self._dead(state)
            self._others = state.held - sum((state.others[name] for name in dead), NOTHING)
            spent = self._ceiling.of(state.spent) + outside - self._told_outside  # `state` lacks the unwritten part
            free = self._ceiling.amount - spent - self._others - kept
            reserved = kept + (_granted(needs, free) if needs else _kept_back(spare, free))
            return Reservation(reserved, outside, dead)

        try:
            await asyncio.to_thread(self._flush)
            await asyncio.to_thread(reserve, self._lake, self._run_id, self._holder, decide)
            self._lease, self._renewed_at = reserved, time.monotonic()
            self._landing -= landed
            self._told_outside = outside
        finally:
            self._ended += 1
            self._wake()
        if self._beating is None and self._lease != NOTHING:
            self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        """Write heartbeats while there is a reservation."""
        while self._lease != NOTHING:
            await asyncio.sleep(BEAT_SECONDS)
            if self._begun == self._ended and time.monotonic() - self._renewed_at >= BEAT_SECONDS:
                with suppress(EvalakeError):  # the reservation is stale then, and the next call raises the error
                    await self._renew()
        self._beating = None

    def _dead(self, state: BudgetState) -> list[str]:
        """List the holders with a reservation and without a heartbeat for PATIENCE_SECONDS, by this process's clock."""
        now = time.monotonic()
        for name, beat in state.heartbeats.items():
            if self._seen.get(name, (None, 0.0))[0] != beat:
                self._seen[name] = beat, now
        silent = (name for name in state.others if now - self._seen[name][1] > PATIENCE_SECONDS)
        return [name for name in silent if state.others[name] != NOTHING]

    def _most_usd(self, request: Request) -> float:
        if self._ceiling.usd is None:
            return 0.0
        model = request.model
        price, counts = self._configuration.model(model).price, self._provider_counts.get(model, 1.0)
        return most_usd(request, self._longest.get(model), price, counts) or 0.0

    def _learn(self, request: Request, reply: Reply) -> None:
        """Note the model's longest reply, and its provider's token counts."""
        model = request.model
        self._longest[model] = max(self._longest.get(model, 0), reply.output_tokens or 0)
        if self._ceiling.usd is not None and reply.input_tokens and (counted := input_tokens(request)):
            ratio = reply.input_tokens / counted
            self._provider_counts[model] = max(self._provider_counts.get(model, 1.0), ratio)

    def _make_room(self) -> None:
        """Wake the waiting calls, so that they search for room again."""
        self._no_room_for = None
        self._calls_ended += 1
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _kept_back(spare: Amount, free: Amount) -> Amount:
    """Keep the still free part of an earlier reservation."""
    return Amount(max(min(spare.usd, free.usd), 0.0), max(min(spare.calls, free.calls), 0))


def _granted(needs: list[Amount], free: Amount) -> Amount:
    """Compute the part of the free amount that is reserved for waiting and later calls."""
    if not any(need.within(free) for need in needs):
        return NOTHING
    wanted = sum(needs, NOTHING)
    usd = min(max(wanted.usd, free.usd / PART), free.usd)
    return Amount(usd, min(max(wanted.calls, free.calls // PART), free.calls))
