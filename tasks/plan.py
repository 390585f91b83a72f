"""Plan: which items a run consists of, as its manifest lists them, and what they would cost."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import groupby, islice, product
from math import ceil, inf
from typing import Any, Literal

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUN_ITEMS
from evalake.core.configuration import UNKNOWN
from evalake.core.hashing import content_hash
from evalake.models.cost import (
    ASSUMED_OUTPUT_TOKENS,
    BASELINE_PREFIX,
    Tokens,
    batch_share,
    cost_usd,
    input_tokens,
    output_limit,
)
from evalake.models.request import Reply, Request
from evalake.reports.wording import count_of, dollars
from evalake.sdk import Dataset, Exchange, Item
from evalake.sdk.results import unjudged_hash
from evalake.sdk.sample import Seen
from evalake.storage.landing import land
from evalake.storage.ledger import ReplyLengths, newest_index, reply_lengths
from evalake.tasks.converse import Conversation, next_request, replay_from_ledger
from evalake.tasks.preflight import Plan
from evalake.tasks.runtime.context import RunContext

SEGMENT_SAMPLES = 10_000  # how much is planned at once: bounds memory for a run of any size


def segments(
    datasets: Sequence[Dataset],
    model: str,
    judges: Sequence[str],
    prompt_types: Sequence[str],
    replicates: Iterable[int],
) -> Iterator[list[Item]]:
    """Yield the items of one model in segments; those of one sample, told apart by their judges, stay together."""
    asking: Sequence[str | None] = judges or [None]
    asked = product(replicates, prompt_types, datasets)
    subjects = ((sample, kind, replicate) for replicate, kind, dataset in asked for sample in dataset.samples)
    while part := list(islice(subjects, SEGMENT_SAMPLES)):
        yield [Item(sample, model, judge, kind, replicate) for sample, kind, replicate in part for judge in asking]


def write_manifest(context: RunContext, conversations: Sequence[Conversation], versions: Mapping[str, str]) -> None:
    """Land the run items of conversations."""
    if rows := [_manifest_row(context, conversation, versions) for conversation in conversations]:
        land(context.lake, RUN_ITEMS, conform(rows, RUN_ITEMS))


def list_planned(context: RunContext, conversations: Sequence[Conversation], versions: Mapping[str, str]) -> None:
    """Land the run items of conversations whose calls are all known, and mark them as listed.

    A judge's call depends on the reply of its subject: where that is new, the item lands with its rows. So does one
    of a fallback.
    """
    known = [
        each
        for each in conversations
        if not each.fallback_for and (each.answered or not _has_judge_call(context, each))
    ]
    write_manifest(context, known, versions)
    for conversation in known:
        conversation.is_listed = True


def cut_batches(conversations: Iterable[Conversation], size: int) -> Iterator[list[Conversation]]:
    """Cut conversations into batches of about `size`; those that share a subject call stay together."""
    batch: list[Conversation] = []
    for _, group in groupby(
        conversations, key=lambda conversation: (conversation.first_hash, conversation.item.replicate)
    ):
        batch.extend(group)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def _manifest_row(context: RunContext, conversation: Conversation, versions: Mapping[str, str]) -> dict[str, Any]:
    item = conversation.item
    identity = [item.sample.sample_hash, item.model, item.judge, item.prompt_type, item.replicate]
    return {
        "run_id": context.run_id,
        "item_id": content_hash(identity),
        "suite": context.suite.name,
        "dataset": item.sample.dataset,
        "dataset_version": versions[item.sample.dataset],
        "sample_id": item.sample.sample_id,
        "sample_hash": item.sample.sample_hash,
        "model": item.model,
        "judge": item.judge,
        "prompt_type": item.prompt_type,
        "replicate": item.replicate,
        "prompt_hash": conversation.first_hash,
        "endpoint": conversation.first_endpoint,
        **dict(zip(("judge_hash", "judge_endpoint"), _judge_call(context, conversation), strict=True)),
    }


def _judge_call(context: RunContext, conversation: Conversation) -> tuple[str, str] | tuple[None, None]:
    """Find hash and endpoint of the judge call; stand-ins where the model gave nothing to judge."""
    if not _has_judge_call(context, conversation) or not conversation.answered:
        return None, None
    if len(conversation.answered) > 1:
        return conversation.answered[1].prompt_hash, conversation.answered[1].endpoint
    ended = conversation.failed or conversation.next_hash == conversation.first_hash  # no further call is known
    if ended and not conversation.is_refused:
        return unjudged_hash(conversation.first_hash, conversation.item.judge or ""), UNKNOWN
    if not ended:
        return conversation.next_hash, conversation.next_endpoint
    return None, None


def _has_judge_call(context: RunContext, conversation: Conversation) -> bool:
    """Tell whether a judge is asked in a call of its own, after the subject's."""
    return conversation.item.judge is not None and context.suite.conversation.asks_subject


# Estimate: the calls and the cost of a run, before it begins. New calls get replies of the model's usual length, so
# that the calls of judges are counted, too.


QUICK_ITEMS = 2_000  # of a larger run, the estimate before it is of about so many
COUNTED_REQUESTS = 100  # of each model, whose tokens are counted; those of the others follow from their length
ENOUGH_REPLIES = 10  # of a model in the ledger, from which on they tell how long the next ones will be
FEWEST_OUTPUT_TOKENS = 20
SPREAD = 1.25  # how far the mean length of replies may be off

logger = logging.getLogger("evalake.runs")

Role = Literal["subject", "judge"]


@dataclass(frozen=True)
class ModelEstimate:
    """The estimate of one model as subject or judge; dollars are None where its price is unknown."""

    model: str
    role: Role
    to_make: int
    in_ledger: int
    input_tokens: int
    usd_low: float | None
    usd_high: float | None
    batch_share: float = 1.0
    """Which share of it is paid, where the run asks the model by batch jobs."""
    imported: int = 0
    """Calls in the ledger that are answered from logs of other tools."""


@dataclass(frozen=True)
class Estimate:
    """The estimate of a run: calls and cost, at the price of single calls."""

    by_model: tuple[ModelEstimate, ...]

    @property
    def to_make(self) -> int:
        """Calls that the ledger does not answer."""
        return sum(each.to_make for each in self.by_model)

    @property
    def in_ledger(self) -> int:
        """Calls that the ledger answers."""
        return sum(each.in_ledger for each in self.by_model)

    @property
    def usd(self) -> tuple[float, float] | None:
        """The lowest and the highest expected cost; None where a price is unknown."""
        prices = [(each.usd_low, each.usd_high) for each in self.by_model if each.to_make]
        if any(low is None for low, _ in prices):
            return None
        return sum(low or 0.0 for low, _ in prices), sum(high or 0.0 for _, high in prices)

    @property
    def batch_usd(self) -> tuple[float, float] | None:
        """The expected cost where models are asked by batch jobs as the run wants; None without, or if unknown."""
        if self.usd is None or all(each.batch_share == 1 for each in self.by_model):
            return None
        shares = [(each, each.batch_share) for each in self.by_model if each.to_make]
        low = sum((each.usd_low or 0.0) * share for each, share in shares)
        return low, sum((each.usd_high or 0.0) * share for each, share in shares)

    def as_dict(self) -> dict[str, Any]:
        """Build the object that `--dry-run --json` prints."""
        low, high = self.usd or (None, None)
        return {
            "calls": {"to_make": self.to_make, "in_ledger": self.in_ledger},
            "by_model": [asdict(each) for each in self.by_model],
            "usd_low": low,
            "usd_high": high,
            "batch_usd_low": self.batch_usd and self.batch_usd[0],
            "batch_usd_high": self.batch_usd and self.batch_usd[1],
        }

    def lines(self) -> Iterator[str]:
        """Yield one line for the whole run, and one for each model where there are several."""
        jobs = self.batch_usd if self.to_make else None
        by_jobs = f"; by batch jobs about {dollars(jobs[0])} to {dollars(jobs[1])} USD" if jobs else ""
        yield _line(self.in_ledger, self.to_make, self.usd) + by_jobs + " (estimated)"
        if imported := sum(each.imported for each in self.by_model):
            yield f"  {count_of(imported, 'call')} answered from imported logs"
        if len(self.by_model) > 1:
            for each in self.by_model:
                usd = None if each.usd_low is None or each.usd_high is None else (each.usd_low, each.usd_high)
                yield f"  {each.role} {each.model}: {_line(each.in_ledger, each.to_make, usd)}"


def estimate(context: RunContext, plan: Plan, most_items: int | None = None) -> Estimate:
    """Estimate a run. Of more than `most_items` items, evenly spaced samples stand for all."""
    counts = _Count(context, plan.batched)
    basis = most_items, counts.ledger
    if basis not in plan.estimates:
        plan.estimates[basis] = _estimated(counts, plan, most_items)
    known: Estimate = plan.estimates[basis]
    return known


def _estimated(counts: "_Count", plan: Plan, most_items: int | None) -> Estimate:
    step = 1 if most_items is None else ceil(plan.items / most_items)
    datasets = [replace(dataset, samples=dataset.samples[::step]) for dataset in plan.datasets]
    looked_at = sum(len(dataset.samples) for dataset in datasets)
    for model in plan.models:
        for items in segments(datasets, model, plan.judges, plan.prompt_types, plan.replicates):
            counts.add(items)
    return Estimate(tuple(counts.result(plan.samples / max(looked_at, 1))))


def estimate_items(context: RunContext, items: Sequence[Item], scale: float = 1.0) -> Estimate:
    """Estimate the calls of some items, which represent `scale` times as many."""
    counts = _Count(context)
    counts.add(items)
    return Estimate(tuple(counts.result(scale)))


def log_estimate(context: RunContext, plan: Plan) -> dict[str, Any]:
    """Log the estimate of a run, and return it for the run's row."""
    planned = estimate(context, plan, QUICK_ITEMS)
    for line in planned.lines():
        logger.info("%s", line)
    return {name: value for name, value in planned.as_dict().items() if name != "by_model"}


@dataclass(slots=True)
class _Asked:
    """The calls of one model in one role."""

    to_make: int = 0
    in_ledger: int = 0
    imported: int = 0
    characters: int = 0
    output_limit: int | None = None  # which the configuration sets for all calls of a model
    counted: list[tuple[int, int]] = field(default_factory=list)  # characters and tokens of some requests

    @property
    def input_tokens(self) -> int:
        characters = sum(length for length, _ in self.counted)
        return round(self.characters * sum(tokens for _, tokens in self.counted) / characters) if characters else 0


class _Count:
    def __init__(self, context: RunContext, batched: frozenset[str] = frozenset()) -> None:
        self._context, self._batched = replace(context, is_estimate=True), batched
        ledger_id, version, self._index = newest_index(context.lake, only_reads=True)
        self.ledger = ledger_id, version
        self._asked: dict[tuple[Role, str], _Asked] = {}
        self._seen = Seen()  # calls: one that several items share is one

    @cached_property
    def _lengths(self) -> Mapping[str, ReplyLengths]:
        """How long replies are: a scan of the ledger, which is spared where nothing is to be called."""
        return reply_lengths(self._context.lake)

    def add(self, items: Sequence[Item]) -> None:
        conversations = [Conversation(item) for item in items]
        replay_from_ledger(self._context, conversations, self._index)
        for conversation in conversations:
            self._walk(conversation)

    def result(self, scale: float) -> Iterator[ModelEstimate]:
        for (role, model), asked in self._asked.items():
            to_make = round(asked.to_make * scale)
            low, high = self._usd(model, asked, to_make)
            in_ledger, tokens = round(asked.in_ledger * scale), round(asked.input_tokens * scale)
            share, imported = self._share(model), ceil(asked.imported * scale)
            yield ModelEstimate(model, role, to_make, in_ledger, tokens, low, high, share, imported)

    def _share(self, model: str) -> float:
        real = self._context.configuration.real_model(model)
        return batch_share(real, self._context.configuration.model(real).price) if real in self._batched else 1.0

    def _walk(self, conversation: Conversation) -> None:
        """Count the calls that the ledger answered, and those that would follow."""
        for turn, answered in enumerate(conversation.answered):
            if self._is_new(answered.prompt_hash, conversation):
                asked = self._of(conversation, turn)
                asked.in_ledger += 1
                asked.imported += answered.imported
        for ending in self._context.suite.conversation.usual_replies[len(conversation.answered) :]:
            request = next_request(self._context, conversation)
            if request is None:
                return
            if self._is_new(request.prompt_hash, conversation):
                self._count(self._of(conversation, len(conversation.answered)), request)
            text = "word " * round(self._expected(request.model)[1])
            # With the hash, for a judge is asked about each of two subjects' replies.
            reply = Reply(f"{request.prompt_hash} {text}\n{ending}")
            conversation.answered.append(Exchange(request.prompt_hash, reply))

    def _is_new(self, prompt_hash: str, conversation: Conversation) -> bool:
        return self._seen.add(f"{prompt_hash} {conversation.item.replicate}")

    def _of(self, conversation: Conversation, turn: int) -> _Asked:
        item = conversation.item
        if turn == 0 and self._context.suite.conversation.asks_subject:
            return self._asked.setdefault(("subject", item.model), _Asked())
        return self._asked.setdefault(("judge", item.judge or item.model), _Asked())

    def _count(self, asked: _Asked, request: Request) -> None:
        length = sum(len(message.get("content") or "") for message in request.messages)
        asked.to_make += 1
        asked.characters += length
        asked.output_limit = output_limit(request.parameters)
        if len(asked.counted) < COUNTED_REQUESTS:
            asked.counted.append((length, input_tokens(request)))

    def _expected(self, model: str) -> tuple[float, float]:
        """Estimate how many tokens a reply of the model has in the mean, at least and at most."""
        known = self._lengths.get(self._context.configuration.real_model(model), ReplyLengths(0, 0.0, 0))
        if known.replies < ENOUGH_REPLIES:
            return FEWEST_OUTPUT_TOKENS, ASSUMED_OUTPUT_TOKENS
        return known.mean / SPREAD, known.mean * SPREAD

    def _usd(self, model: str, asked: _Asked, to_make: int) -> tuple[float | None, float | None]:
        model = self._context.configuration.real_model(model)
        if not asked.to_make or model.startswith(BASELINE_PREFIX):
            return 0.0, 0.0
        price = self._context.configuration.model(model).price
        limit = asked.output_limit or inf
        low, high = (
            cost_usd(model, Tokens(asked.input_tokens // asked.to_make, round(min(length, limit))), price)
            for length in self._expected(model)
        )
        return None if low is None else low * to_make, None if high is None else high * to_make


def _line(in_ledger: int, to_make: int, usd: tuple[float, float] | None) -> str:
    if in_ledger and not to_make:
        return f"nothing to ask: the ledger answers all {in_ledger} calls"
    cost = "price unknown"
    if usd is not None:
        cost = f"about {dollars(usd[0])} to {dollars(usd[1])} USD" if usd[1] else "free"
    return f"{in_ledger} of {in_ledger + to_make} in the ledger, {to_make} to call, {cost}"
