"""The keys of some files of the ledger: from the segments that are kept, and from a scan of the files beyond them."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from deltalake import DeltaTable

from contracts.tables import CALLS
from storage.key_index.cache import MOST_REPEATED, Cache, Listed
from storage.key_index.segment import MARK, MOST_ROWS, Array, Segment, marks_of, repeated
from storage.lake import FILE, Lake
from storage.portions import portions

KEEP_FROM = 100_000  # rows that no segment has; fewer are scanned each time
PORTION = 1_000_000  # rows that are scanned at a time
GROWTH = 2  # a segment has at least so many times the rows of all later ones together

logger = logging.getLogger("evalake.key_index")


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a file: from number `first` to before number `end`, of the `of` rows that it has."""

    first: int
    end: int
    of: int

    @property
    def is_small(self) -> bool:
        """Whether it is at most half of the file, and so is read alone."""
        return 2 * (self.end - self.first) <= self.of


@dataclass(frozen=True)
class Keys:
    """Which keys are in some files, and where."""

    uris: Mapping[str, str]  # by the file's own name
    segments: tuple[Segment, ...]
    repeated: Array | None  # marks that two rows have; None where those are too many, or nobody has looked

    def places(self, marks: Array) -> Mapping[str, Part]:
        """Find the part of each file that has all its rows whose keys may have one of these marks."""
        found: dict[str, Part] = {}
        for segment in self.segments:
            _, files, rows = segment.find(marks)
            for number in np.unique(files):
                name = segment.files[number]
                assert name is not None  # of interest
                here = rows[files == number]
                found[self.uris[name]] = Part(int(here.min()), int(here.max()) + 1, segment.lengths[number])
        return found

    def joined(self, later: "Keys") -> "Keys":
        """Join the keys of files that came later to these. Segments of like size become one, so that they stay few."""
        segments = [*self.segments, *later.segments]
        while len(segments) > 1 and _are_alike(*segments[-2:]):
            segments[-2:] = [Segment.joined(segments[-2:])]
        return Keys({**self.uris, **later.uris}, tuple(segments), None)

    def has_any(self, marks: Array) -> bool:
        """Tell whether any row may have a key with one of these marks."""
        return any(segment.find(marks)[0].size for segment in self.segments)


def _are_alike(earlier: Segment, later: Segment) -> bool:
    return earlier.rows < GROWTH * later.rows and earlier.rows + later.rows <= PORTION


def keys_of(lake: Lake, table: DeltaTable, uris: Sequence[str], *, keep: bool) -> Keys:
    """Find the keys of some files of the ledger.

    Args:
        lake: The lake.
        table: Its ledger.
        uris: The files, as the table names them.
        keep: Whether these are all files of the newest version, so that what is scanned of them may be kept.
    """
    named = {_name(uri): uri for uri in uris}
    cache = Cache.of(lake.uri, str(table.metadata().id))
    listed, segments = _loaded(cache, named)
    beyond = _beyond(named, listed)
    rows = _rows(table) if beyond else {}
    if keep and cache is not None and sum(rows.get(name, 0) for name in beyond) >= KEEP_FROM:
        try:
            _keep(cache, lake, named, rows)
        except (OSError, ValueError) as error:
            logger.debug("the key index of the ledger of the lake %s was not kept: %s", lake.uri, error)
        listed, segments = _loaded(cache, named)
        beyond = _beyond(named, listed)
    return _combined(named, segments, listed.repeated, _scans(lake, [named[name] for name in beyond], rows))


def _loaded(cache: Cache | None, named: Mapping[str, str]) -> tuple[Listed, tuple[Segment, ...]]:
    """Load the list and the segments that are kept of these files; nothing where a segment is not whole."""
    if cache is None:
        return Listed(), ()
    for _ in range(2):  # another process may have replaced the list, and its files, since it was read
        listed = cache.listed()
        used = [kept for kept in listed.segments if not named.keys().isdisjoint(kept.files)]
        with suppress(OSError, ValueError):
            return replace(listed, segments=tuple(used)), tuple(cache.load(kept).only(named.keys()) for kept in used)
    return Listed(), ()


def _combined(
    named: Mapping[str, str], kept: Sequence[Segment], repeated: Sequence[int] | None, scanned: Iterable[Segment]
) -> Keys:
    segments = list(kept)
    marks = None if repeated is None else np.array(repeated, np.uint64)
    for segment in scanned:
        marks = None if marks is None else _with_repeated(marks, segment, segments)
        segments.append(segment)
    return Keys(named, tuple(segments), marks)


def _with_repeated(marks: Array, new: Segment, others: Sequence[Segment]) -> Array | None:
    """Add to marks that two rows have those that repeat in a new segment, or that it shares with the other segments."""
    more = [marks, repeated(new.marks)]
    for first in range(0, new.entries.size, PORTION):
        part = new.marks[first : first + PORTION]
        more += [part[np.unique(other.find(part)[0])] for other in others]
    together = np.unique(np.concatenate(more))
    return together if together.size <= MOST_REPEATED else None


def _keep(cache: Cache, lake: Lake, named: Mapping[str, str], rows: Mapping[str, int]) -> None:
    """Make segments of the files that are in none, and merge small ones. Raises OSError where nothing can be kept.

    A segment is merged with later ones until it is much larger than they are together: so there are few segments, and
    a row is rewritten no more often than the ledger doubles in size.
    """
    with cache.held() as is_held:
        if not is_held:
            return  # another process is doing this
        listed, old = _live(cache, named)
        if not (beyond := _beyond(named, listed)):
            return  # another process has done this
        scans = _scans(lake, [named[name] for name in beyond], rows)
        fresh, within = zip(*(cache.write([scan]) for scan in scans), strict=True)
        left = _left_alone(old, sum(sum(each.lengths) for each in fresh))
        merged = [*listed.segments[left:], *fresh]
        kept, doubled = fresh[0], within[0]
        if len(merged) > 1:
            kept, doubled = cache.write([cache.load(each, in_order=True) for each in merged])
        before = listed.repeated if left else ()  # all of the ledger is in the segment that was just written
        twice = None if before is None else np.append(np.array(before, np.uint64), doubled)
        for each in fresh:
            twice = None if twice is None else _with_repeated(twice, cache.load(each), old[:left])
        if twice is not None:
            twice = _still_repeated(twice, [*old[:left], cache.load(kept)])
        cache.save([*listed.segments[:left], kept], twice)


def _live(cache: Cache, named: Mapping[str, str]) -> tuple[Listed, list[Segment]]:
    """Load what is kept, without the files that are gone: one that came back would be scanned again."""
    listed, segments = _loaded(cache, named)
    live = tuple(replace(kept, files=segment.files) for kept, segment in zip(listed.segments, segments, strict=True))
    return replace(listed, segments=live), list(segments)


def _left_alone(old: Sequence[Segment], fresh: int) -> int:
    """Count the old segments, from the first on, that are not merged with later ones and `fresh` new rows."""
    rows = fresh
    for left in range(len(old), 0, -1):
        last = old[left - 1]
        is_large = GROWTH * rows <= last.rows and last.entries.size <= 2 * last.rows
        if is_large or rows + last.rows >= MOST_ROWS:
            return left
        rows += last.rows
    return 0


def _still_repeated(marks: Array, segments: Sequence[Segment]) -> Array:
    """Select from marks that two rows had those that two rows still have."""
    rows = np.zeros(marks.size, np.int64)
    for segment in segments:
        rows += np.bincount(segment.find(marks)[0], minlength=marks.size)
    return marks[rows > 1]


def _scans(lake: Lake, uris: Sequence[str], rows: Mapping[str, int]) -> Iterator[Segment]:
    """Scan the keys of files, a portion of the rows at a time."""
    sizes = {uri: rows.get(_name(uri), 0) for uri in sorted(uris)}
    return (_scan(lake, portion) for portion in portions(sizes, PORTION))


def _scan(lake: Lake, uris: Sequence[str]) -> Segment:
    columns = MARK, pl.col("replicate"), pl.col(FILE)
    keys = lake.frame_of_files(CALLS, uris).select(columns).collect()
    runs = keys[FILE].rle().struct  # the rows come file by file
    lengths = dict(zip(runs.field("value"), runs.field("len"), strict=True))
    lengths.update({uri: 0 for uri in uris if uri not in lengths})
    return Segment.of([_name(uri) for uri in lengths], list(lengths.values()), marks_of(keys))


def _beyond(named: Mapping[str, str], listed: Listed) -> list[str]:
    covered = {name for kept in listed.segments for name in kept.files}
    return [name for name in named if name not in covered]


def is_worth_keeping(table: DeltaTable) -> bool:
    """Tell whether a ledger is so large that its keys are kept."""
    return sum(_rows(table).values()) >= KEEP_FROM


def _rows(table: DeltaTable) -> Mapping[str, int]:
    """Read from the log the number of rows of each file, by the file's name; 0 where the log has none."""
    files = pl.DataFrame(table.get_add_actions(flatten=True))
    if not files.height:
        return {}
    told = files.select("path", pl.col("num_records").fill_null(0))
    return {_name(path): rows for path, rows in told.iter_rows()}


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]
