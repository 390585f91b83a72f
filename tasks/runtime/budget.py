"""Budget: no call of a run starts if what is spent and what is held back for calls on their way would pass its ceiling.

Every process that makes calls of the run holds back a part of the ceiling (`storage/reservations.py`), and admits calls
within it. When that is used up, it asks for more; when there is no more, calls wait for others to give back what they
did not need, and are refused once nobody can.
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
from evalake.models.cost import input_tokens, most_usd
from evalake.models.failures import AttemptFailed
from evalake.models.limits import WithoutSlot
from evalake.models.request import Failure, Reply, Request
from evalake.storage.lake import Lake
from evalake.storage.reservations import Amount, BudgetState, Ceiling, Reservation, reserve

PART = 4  # of what is left, a process holds back one in so many at a time
LOOK_SECONDS = 1.0  # how often a process that waits for others looks what they gave back
BEAT_SECONDS = 15.0
STALE_SECONDS = 30.0  # a holder that could not give a sign of life for so long admits nothing until it has
PATIENCE_SECONDS = 60.0  # a holder without a sign of life for so long has died: nothing is held back for it any more

NOTHING = Amount()

logger = logging.getLogger("evalake.budget")


@dataclass(eq=False, slots=True)
class Spending:
    """One call: what is held back for it, and what its failed attempts have cost."""

    request: Request
    held: Amount = NOTHING
    is_admitted: bool = False  # an attempt of it is on its way, or has failed and another one follows
    is_counted: bool = False  # among the calls that were made


class _Signal:
    """Wakes all that wait for it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def send(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until the signal is sent, or for so many seconds; tell whether it was sent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._event.wait()
        return False


class Budget:
    """The part of a run's ceiling that one process holds. All but `abandon` belongs to one event loop."""

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
            lake: Where reservations and the ledger are.
            run_id: The run that the ceiling is of.
            ceiling: What may be spent.
            configuration: Prices and defaults of the models.
            flush: Commits the replies so far to the ledger.
            longest: Output tokens of the longest reply known, by model.
        """
        self._lake, self._run_id, self._ceiling, self._configuration = lake, run_id, ceiling, configuration
        self._flush = flush
        self._longest = dict(longest)
        self._provider_counts: dict[str, float] = {}  # by model: input tokens it told for one that was counted here
        self._holder = uuid4().hex
        self._open: set[Spending] = set()
        self._needs: list[Amount] = []  # of calls that wait
        self._landing = NOTHING  # of replies that may not be in the ledger yet
        self._outside = NOTHING  # spent outside the ledger, in all
        self._told_outside = NOTHING  # as far as the others know of it
        self._lease = NOTHING
        self._others = NOTHING  # what others held back when it was last looked
        self._renewed_at = time.monotonic()
        self._seen: dict[str, tuple[int, float]] = {}  # holder to its last beat and when that was first seen
        self._begun = self._ended = 0  # renewals of the lease
        self._error: EvalakeError | None = None
        self._renewal_ended, self._call_ended = _Signal(), _Signal()
        self._no_room_for: Amount | None = None  # what the last renewal left waiting, where no call has ended since
        self._beating: asyncio.Task[None] | None = None

    async def admit(self, spending: Spending, failed_cost_usd: float, without_slot: WithoutSlot) -> None:
        """Hold back what an attempt of a call may cost, waiting for it where others may give some back.

        Raises AttemptFailed (budget) where there will be no room for it.
        """
        need = self._ceiling.of(Amount(self._most_usd(spending.request), 0 if spending.is_counted else 1))
        # While it waits, it holds nothing but what it has spent: calls that wait for each other would wait for ever.
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
        """Count what a call has cost in place of what was held back, once its reply is with the ledger's writer."""
        failed = Amount(outcome.failed_cost_usd or 0.0)
        if isinstance(outcome, Failure):
            self._outside += self._ceiling.of(failed + Amount(calls=1 if spending.is_counted else 0))
        else:
            if outcome.cost_usd is None:  # it told no usage: the ledger cannot tell what it cost, so take the most
                failed += Amount(spending.held.usd)
            self._outside += self._ceiling.of(failed)
            self._landing += self._ceiling.of(Amount(outcome.cost_usd or 0.0, 1))
            self._learn(spending.request, outcome)
        self._open.discard(spending)
        self._make_room()

    def give_up(self, spending: Spending) -> None:
        """Count what is held back for a call that was cut off as spent, for nobody knows what it cost."""
        self._outside += spending.held
        self._open.discard(spending)
        self._make_room()

    async def rest(self) -> None:
        """Give back what is not needed, where no call is on its way."""
        while self._begun > self._ended:
            await self._renewal_ended.wait()
        if not self._open and (self._lease != NOTHING or self._outside != self._told_outside):
            await self._renew(give_back=True)
            self._raise_error()

    def abandon(self) -> None:
        """Give back everything, once the event loop has ended."""
        if self._lease == NOTHING:
            return
        try:
            self._flush()
            reserve(self._lake, self._run_id, self._holder, lambda _: Reservation(NOTHING, self._outside))
        except EvalakeError as error:
            logger.warning("what was held back for the run %s is free in a minute only: %s", self._run_id, error)

    @property
    def _held(self) -> Amount:
        """What of the lease is used: by calls on their way, and by what the others cannot know of yet."""
        unknown = self._landing + self._outside - self._told_outside
        return sum((spending.held for spending in self._open), unknown)

    def _fits(self, need: Amount) -> bool:
        # While a renewal is under way, the lease may become smaller.
        return self._begun == self._ended and not self._is_stale() and (self._held + need).within(self._lease)

    def _is_stale(self) -> bool:
        return time.monotonic() - self._renewed_at > STALE_SECONDS

    def _has_to_look(self) -> bool:
        """Tell whether no other call looks just now, or has since this one began to wait, what others gave back."""
        return self._begun == self._ended and time.monotonic() - self._renewed_at >= LOOK_SECONDS

    async def _find_room(self, need: Amount, without_slot: WithoutSlot) -> None:
        is_known = self._no_room_for is not None and self._no_room_for.within(need)
        begun = self._begun - 1 if is_known else self._begun
        while not self._fits(need):
            if self._begun > self._ended:
                await self._renewal_ended.wait()
            elif self._ended <= begun or self._is_stale():  # no renewal has taken this need into account
                await self._renew()
            elif self._others != NOTHING or any(spending.is_admitted for spending in self._open):
                self._no_room_for = need
                async with without_slot():  # a call that it waits for may be one that is tried again, without a slot
                    call_ended = await self._call_ended.wait(None if self._others == NOTHING else LOOK_SECONDS)
                    if call_ended or self._has_to_look():
                        begun = self._begun
            elif self._landing == NOTHING and self._outside == self._told_outside:
                raise AttemptFailed("budget", f"not asked: the run's ceiling of {self._ceiling} is reached")
            else:  # a call has ended since the renewal began, which counted it as spent and as held back
                begun = self._begun
            self._raise_error()

    async def _renew(self, give_back: bool = False) -> None:
        """Tell the others what was spent, and hold back what the waiting calls need.

        Where no call waits, what is held back stays so; with `give_back`, what is not needed is given back.
        """
        self._begun += 1
        landed, outside = self._landing, self._outside
        kept = sum((spending.held for spending in self._open), NOTHING)
        needs = list(self._needs)
        spare = NOTHING if give_back else self._lease - kept
        reserved = NOTHING

        def decide(standing: BudgetState) -> Reservation:
            nonlocal reserved
            dead = self._dead(standing)
            self._others = standing.held - sum((standing.others[name] for name in dead), NOTHING)
            # What this holder spent outside the ledger is in `standing` only as far as it was told before.
            spent = self._ceiling.of(standing.spent) + outside - self._told_outside
            free = self._ceiling.amount - spent - self._others - kept
            reserved = kept + (_granted(needs, free) if needs else _kept_back(spare, free))
            return Reservation(reserved, outside, dead)

        try:
            await asyncio.to_thread(self._flush)
            await asyncio.to_thread(reserve, self._lake, self._run_id, self._holder, decide)
        except EvalakeError as error:
            self._error = error
        else:
            self._lease, self._renewed_at = reserved, time.monotonic()
            self._landing -= landed
            self._told_outside = outside
        finally:
            self._ended += 1
            self._renewal_ended.send()
        if self._beating is None and self._lease != NOTHING:
            self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        """Give signs of life for as long as something is held back."""
        while self._lease != NOTHING and self._error is None:
            await asyncio.sleep(BEAT_SECONDS)
            if self._begun == self._ended and time.monotonic() - self._renewed_at >= BEAT_SECONDS:
                await self._renew()
        self._beating = None

    def _dead(self, standing: BudgetState) -> list[str]:
        """List the others that hold something back and have long given no sign of life, by this process's own clock."""
        now = time.monotonic()
        for name, beat in standing.heartbeats.items():
            if self._seen.get(name, (None, 0.0))[0] != beat:
                self._seen[name] = beat, now
        silent = (name for name in standing.others if now - self._seen[name][1] > PATIENCE_SECONDS)
        return [name for name in silent if standing.others[name] != NOTHING]

    def _most_usd(self, request: Request) -> float:
        if self._ceiling.usd is None:
            return 0.0
        model = request.model
        price, counts = self._configuration.model(model).price, self._provider_counts.get(model, 1.0)
        return most_usd(request, self._longest.get(model), price, counts) or 0.0

    def _learn(self, request: Request, reply: Reply) -> None:
        """Note how long the model's replies get, and how its provider counts tokens."""
        model = request.model
        self._longest[model] = max(self._longest.get(model, 0), reply.output_tokens or 0)
        if self._ceiling.usd is not None and reply.input_tokens and (counted := input_tokens(request)):
            ratio = reply.input_tokens / counted
            self._provider_counts[model] = max(self._provider_counts.get(model, 1.0), ratio)

    def _make_room(self) -> None:
        """Wake the calls that wait for others, so that they look for room again."""
        self._no_room_for = None
        self._call_ended.send()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _kept_back(spare: Amount, free: Amount) -> Amount:
    """Keep what was held back before, as far as it is still free."""
    return Amount(max(min(spare.usd, free.usd), 0.0), max(min(spare.calls, free.calls), 0))


def _granted(needs: list[Amount], free: Amount) -> Amount:
    """Compute how much of the free part of a ceiling is held back for waiting calls, with something for later calls."""
    if not any(need.within(free) for need in needs):
        return NOTHING
    wanted = sum(needs, NOTHING)
    usd = min(max(wanted.usd, free.usd / PART), free.usd)
    return Amount(usd, min(max(wanted.calls, free.calls // PART), free.calls))
