"""The sessions that can be scored: those in the lake, and in sources that are followed."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import polars as pl
from cachetools import LRUCache
from pydantic import BaseModel

from evalake.admin.import_results import land_samples
from evalake.contracts.tables import RUNS, SAMPLES
from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.core.redaction import redact
from evalake.flows.score_session import NEVER, read_samples
from evalake.labels.sheets import land_given
from evalake.sdk import Dataset, Sample
from evalake.server.settings import NotFoundError, NotOverError
from evalake.storage.cached_table import CachedTable
from evalake.storage.forget import forgotten_samples
from evalake.storage.lake import Lake
from evalake.suites.session_review.session import Session, load
from evalake.suites.session_review.sources.read import read_dataset, unfinished, watermark
from evalake.suites.session_review.sources.tarsy_live import Poll
from evalake.suites.session_review.suite import SUITE
from evalake.tasks.extract import refused_rows
from evalake.tasks.publish import quarantine

READ_AGAIN_SECONDS = 3.0  # sources are not looked at more often than this, however many unknown ids are asked for
LIST_ALL_SECONDS = 600.0  # after which a live source is listed whole, for what was said of old sessions
MOST_NAMED = 5  # refused sessions of a source
READ_AT_ONCE = 200  # sessions
SEARCHED_CHARACTERS = 20_000  # of an alert
KEPT_CHARACTERS = 16_000_000  # of the sessions that were read last

TRIGGER = "score_on_completion"
"""What has triggered the scorings of sessions that are scored by themselves; a parameter of runs that land these."""

logger = logging.getLogger("evalake.service")


@dataclass(frozen=True, slots=True)
class Known:
    """A session as lists show it. Times are microseconds since 1970."""

    session_id: str
    sample_hash: str
    session_status: str
    alert_type: str | None
    agent: str
    started_at_us: int | None
    completed_at_us: int | None
    tool_calls: int
    searched: str


class SourceView(BaseModel):
    """A source, with the result of its last reading."""

    source: str
    state: Literal["read", "empty", "away", "unread"]
    detail: str | None


@dataclass
class Source:
    """One source. It is read again where it has changed since it was read."""

    name: str
    state: Literal["read", "empty", "away", "unread"] = "unread"
    detail: str | None = None
    _mark: Any = None
    _since: str | None = None
    _listed_at: float = float("-inf")

    def read(self, known: Mapping[str, int | None], take: Callable[[str, Dataset], None]) -> None:
        """Have the dataset taken, which may be empty, unless it has not changed or cannot be read: see `state`.

        Of a live source only sessions are read that are not `known`, by id and end. What could not be taken is read
        again the next time.
        """
        now = time.monotonic()
        lists_all = now - self._listed_at >= LIST_ALL_SECONDS
        poll = Poll(known, None if lists_all else self._since)
        try:
            mark = watermark(self.name)  # of before it is read: what comes in the meantime is read the next time
            if self.state in ("read", "empty") and mark is not None and mark == self._mark:
                return
            dataset = read_dataset(self.name, may_be_empty=True, poll=poll)
        except Exception as error:  # noqa: BLE001 - a source that breaks its reader is away, and says so
            unexpected = "" if isinstance(error, SourceError) else f"unexpected {type(error).__name__}: "
            self._tell("away", redact(f"{unexpected}{error}"))
            return
        take(self.name, dataset)
        self._mark, self._since = mark, poll.since
        if lists_all:
            self._listed_at = now
        has_some = dataset.samples or ("://" in self.name and any(known))  # polls give what is new
        refused = [f"{skip.where} ({skip.reason})" for skip in dataset.skipped if skip.payload is not None]
        named = ", ".join([*refused[:MOST_NAMED], *["…"] * (len(refused) > MOST_NAMED)])
        left_out = f"{len(refused):,} refused: {named}" if refused else None
        empty = "it holds no session that is over and can be judged"
        self._tell(*(("read", left_out) if has_some else ("empty", "; ".join(filter(None, (empty, left_out))))))

    @property
    def view(self) -> SourceView:
        """The source as the API tells it."""
        return SourceView(source=redact(self.name), state=self.state, detail=self.detail)

    def _tell(self, state: Literal["read", "empty", "away"], detail: str | None) -> None:
        if (state, detail) != (self.state, self.detail) and detail is not None:
            logger.warning("the source %s: %s", redact(self.name), detail)
        self.state, self.detail = state, detail


class Sessions:
    """The sessions of a lake by id; of several samples of one session, the one that was landed last."""

    def __init__(self, lake: Lake, sources: Sequence[str] = (), *, scores_new: bool = False) -> None:
        """Follow sources; `scores_new` is kept with the sessions that land: they wait to be scored by themselves."""
        self._lake, self._sources, self._scores_new = lake, [Source(name) for name in sources], scores_new
        self._samples = CachedTable(lake, SAMPLES, ("dataset_version", "sample_id", "sample_hash"), SUITE.name)
        self._runs = CachedTable(lake, RUNS, ("dataset_versions", "started_at"), SUITE.name)
        self._known: dict[str, Known] = {}  # by sample hash
        self._current: dict[str, Known] = {}
        self._seen: tuple[pl.DataFrame, pl.DataFrame] | None = None
        self._unfinished: dict[str, frozenset[str]] = {}  # by source
        self._told: set[str] = set()  # ids that `take_new` has returned
        self._landed: set[str] = set()  # ids of sources, until it has returned them
        self._of_the_past: set[str] = set()  # sources of a lake that had no session, until they are read
        self._read_at = float("-inf")
        self._lock = threading.RLock()
        self._texts: LRUCache[str, str] = LRUCache(KEPT_CHARACTERS, getsizeof=len)  # by sample hash
        self._reading = threading.Lock()  # of its own, so that nobody who asks for a known session waits for a source

    def all(self) -> Mapping[str, Known]:
        """Read all sessions, by id."""
        with self._lock:
            rows, of_runs = self._samples.rows(), self._runs.rows()
            if self._seen is None or self._seen[0] is not rows or self._seen[1] is not of_runs:
                self._index(rows, of_runs)
                self._seen = (rows, of_runs)
            return self._current

    def find(self, session_id: str) -> Known:
        """Find one session. Raises NotOverError for a running session, NotFoundError for an unknown one."""
        if (known := self.all().get(session_id)) is None:
            self.read_sources()
            known = self.all().get(session_id)
        if known is not None:
            return known
        if any(session_id in ids for ids in self._unfinished.values()):
            raise NotOverError(f"the session {session_id[:200]!r} is not over: only sessions that are can be scored")
        raise NotFoundError(f"there is no session {session_id[:200]!r}")

    def samples(self, sessions: Sequence[Known]) -> Iterator[tuple[Known, Sample]]:
        """Yield sessions with their samples and all of their input, some read at a time: they may be large."""
        for start in range(0, len(sessions), READ_AT_ONCE):
            some = sessions[start : start + READ_AT_ONCE]
            samples = read_samples(self._lake, [known.sample_hash for known in some])
            yield from ((known, samples[known.sample_hash]) for known in some)

    def session(self, known: Known) -> Session:
        """Read the session itself."""
        with self._lock:
            text = self._texts.get(known.sample_hash)
        if text is None:
            ((_, sample),) = self.samples([known])
            text = sample.input
            if len(text) <= KEPT_CHARACTERS:
                with self._lock:
                    self._texts[known.sample_hash] = text
        return load(text)

    @property
    def has_sources(self) -> bool:
        """Whether it follows a source."""
        return bool(self._sources)

    @property
    def sources(self) -> list[SourceView]:
        """The sources, each with the result of its last reading."""
        return [source.view for source in self._sources]

    def take_new(self) -> tuple[list[str], list[str]]:
        """List the sessions that have come since the last call, by id: all, and those that came by the sources here.

        Another service of the lake may have read the same source first, and a request of this one between two looks.
        The first reading of each source of a lake without sessions gives past ones, which are not of the second list.
        """
        ids = self.all().keys()
        new, landed = sorted(ids - self._told), sorted(ids & self._landed)
        self._told |= ids
        self._landed.difference_update(landed)
        return new, landed

    def to_be_scored(self) -> list[str]:
        """List the sessions that first landed to be scored by themselves, by id; earlier services may have done so."""
        flag = pl.col("parameters").str.json_path_match(f"$.{TRIGGER}") == "true"
        of_runs = self._lake.frame(RUNS).filter(suite=SUITE.name).sort("started_at").select("dataset_versions", flag)
        first: dict[str, tuple[int, bool]] = {}  # by dataset version, in the order of landing
        for number, (versions, is_wanted) in enumerate(of_runs.collect().iter_rows()):
            for version in json.loads(versions).values():
                first.setdefault(version, (number, bool(is_wanted)))
        landed: dict[str, tuple[int, bool]] = {}  # by session
        with self._lock:
            rows = self._samples.rows().select("dataset_version", "sample_id")
        for version, session_id in rows.iter_rows():
            at = first.get(version, (-1, False))
            landed[session_id] = min(at, landed.get(session_id, at))
        return [session_id for session_id, (_, is_wanted) in landed.items() if is_wanted]

    def read_sources(self) -> list[str]:
        """Read changed sources, and land new sessions; returns their ids.

        Does nothing where the sources were just looked at, or are being read: no caller waits for another. Raises what
        kept the sessions of a source from landing, after all sources were read.
        """
        if not self._reading.acquire(blocking=False):
            return []
        try:
            if time.monotonic() - self._read_at < READ_AGAIN_SECONDS:
                return []
            before = dict(self.all())
            if not before and self._read_at == float("-inf"):
                self._of_the_past = {source.name for source in self._sources}
            ended = {session_id: known.completed_at_us for session_id, known in before.items()}
            errors: list[Exception] = []
            for source in self._sources:
                try:
                    source.read(ended, self._land_new)
                except Exception as error:  # noqa: BLE001 - the other sources are read after any error
                    errors.append(error)
            self._read_at = time.monotonic()
            if errors:
                raise errors[0]
            return sorted(self.all().keys() - before.keys())
        finally:
            self._reading.release()

    def _land_new(self, source: str, dataset: Dataset) -> None:
        self._unfinished[source] = unfinished(dataset)
        there = self._known.keys() | forgotten_samples(self._lake)
        new = Dataset(dataset.name, tuple(each for each in dataset.samples if each.sample_hash not in there))
        if new.samples:
            is_past = source in self._of_the_past
            if not is_past:
                self._landed |= {each.sample_id for each in new.samples} - self._current.keys()
            said = {"files": [redact(source)], TRIGGER: self._scores_new and not is_past}
            land_samples(self._lake, SUITE, [new], said, datetime.now(UTC))
        if refused := refused_rows(dataset):  # each once, however often the source is read
            followed = f"sessions-{content_hash(source)[:12]}"
            quarantine(self._lake, followed, followed, refused)
        if dataset.labels:
            hashes = {session_id: known.sample_hash for session_id, known in self.all().items()}
            land_given(self._lake, SUITE, dataset.labels, hashes)
        self._of_the_past.discard(source)

    def _index(self, rows: pl.DataFrame, of_runs: pl.DataFrame) -> None:
        self._know(set(rows["sample_hash"]) - self._known.keys())
        landed: dict[str, datetime] = {}
        for versions, at in of_runs.iter_rows():
            for version in json.loads(versions).values():
                landed[version] = max(at, landed.get(version, NEVER))
        newest = sorted(
            (landed.get(version, NEVER), sample_hash)
            for version, sample_hash in rows.select("dataset_version", "sample_hash").iter_rows()
        )
        ordered = (self._known[sample_hash] for _, sample_hash in newest)
        self._current = {known.session_id: known for known in ordered}

    def _know(self, new: set[str]) -> None:
        """Read sessions that were not read before, some at a time: they may be large."""
        hashes = sorted(new)
        for start in range(0, len(hashes), READ_AT_ONCE):
            wanted = pl.col("sample_hash").is_in(hashes[start : start + READ_AT_ONCE])
            rows = self._lake.frame(SAMPLES).filter((pl.col("suite") == SUITE.name) & wanted)
            for sample_hash, text in rows.select("sample_hash", "input").unique("sample_hash").collect().iter_rows():
                self._known[sample_hash] = _known(sample_hash, load(text))


def _known(sample_hash: str, session: Session) -> Known:
    parts = (session.session_id, session.alert_type or "", session.agent, session.alert[:SEARCHED_CHARACTERS])
    return Known(
        session_id=session.session_id,
        sample_hash=sample_hash,
        session_status=session.status,
        alert_type=session.alert_type,
        agent=session.agent,
        started_at_us=session.started_at_us,
        completed_at_us=session.completed_at_us,
        tool_calls=sum(1 for _ in session.tool_calls),
        searched="\n".join(parts).casefold(),
    )
