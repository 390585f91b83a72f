"""Where sessions come from: the starter sessions, TARSy's exports and databases, generic JSON.

A source, as `--dataset` takes it, is one of

* `starter`: the sessions that ship with the project;
* a `.json` file: a session detail or a final analysis as TARSy's API gives them, a generic session (see generic.py), a
  history of messages or a trace (see histories.py), or a list of any of these; a `.jsonl` file has one on each line;
* a folder: every such file in it and below, and every folder of TARSy's trace files (see tarsy_trace.py). Where two
  bodies tell of one session, the one that tells more is kept;
* a SQLite file of TARSy (`.db`, `.sqlite`, `.sqlite3`), or the URL of its Postgres database, `postgresql://…`, of
  either generation;
* the URL of today's TARSy, `https://…`, whose API is read with the token of TARSY_API_TOKEN.

Only sessions that are over become samples. A session without any interaction is left out too, and a completed one with
tool calls without result, unless `?accept_empty=1` follows the source. So is one that was not read whole.
Each one that is left out is counted by its reason.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from evalake.core.errors import SourceError
from evalake.core.files import LARGEST_IN_ALL, UNREADABLE, FileRefusedError, Files
from evalake.sdk import Dataset, Label, Sample, Skipped
from evalake.sdk.dataset import read_whole
from evalake.sdk.json_in_text import decode_once
from evalake.sdk.sample import NOT_READ
from evalake.sdk.sources import NOT_UTF8, as_payload, read_table, reason_of
from evalake.suites.session_review.session import Session, dump
from evalake.suites.session_review.sources import database, generic, require_whole, tarsy_live
from evalake.suites.session_review.sources.generic import RefusedError
from evalake.suites.session_review.sources.histories import bodies
from evalake.suites.session_review.sources.tarsy import read_detail, read_final_analysis
from evalake.suites.session_review.sources.tarsy_live import Poll, Product, labels_of
from evalake.suites.session_review.sources.tarsy_trace import is_trace, read_api_detail, read_bodies, saved_bodies

STARTER = Path(__file__).resolve().parents[1] / "starter"
SUITE = "session_review"
LARGEST_JSON = 512 * 1024 * 1024  # bytes: a JSON file is read as a whole
LINES = (".jsonl", ".ndjson")
SQLITE = (".db", ".sqlite", ".sqlite3")
URLS = ("postgres", "postgresql", "postgresql+pg8000")
API = ("http", "https")

_CHANGES = """
    SELECT status, count(*) AS sessions, max(completed_at_us) AS newest FROM alert_sessions
    GROUP BY status ORDER BY status"""

ANOTHER_BODY = "another body of the same session"
LINKED_FOLDER = "link to a folder"
NOTHING_TO_JUDGE = "session in which nothing happened"
NO_INTERACTION = "session without any interaction"
NO_RESULT = "tool calls have no result"
ACCEPT_EMPTY = "accept_empty=1"
FORMS = (
    "forms that are read: TARSy's session detail (`session_id` or `id`, `stages`), its final analysis (`session_id`, "
    "`final_analysis`), a folder of its trace files (session.json, trace_list.json, trace_interactions/), and generic "
    "sessions (`session_id`, `alert`, `messages`)"
)

Found: TypeAlias = tuple[str, Session | Skipped | list[Label]]
"""Where it stands, and what it is: a session, why there is none, or what people said of one."""


def read_dataset(source: str, *, may_be_empty: bool = False, poll: Poll | None = None) -> Dataset:
    """Read a source whole, or what is new to a poll of it where it is live.

    Samples are named like their sessions; their input is the session in canonical JSON. Raises SourceError where the
    source is missing, unreadable, malformed as a whole, or holds no session that is over though it may not be empty.
    """
    source, accepts_empty = _split(source)
    url = "://" in source
    shown = database.hide_password(source) if url else source

    def read() -> Dataset:
        if url:
            name = tarsy_live.api_name(source) if _is_api(source) else database.database_name(source)
            return _dataset(name, _from_url(source, poll or Poll()), accepts_empty)
        return _read_path(source, accepts_empty)

    dataset = read_whole(shown, read, "session that can be judged", may_be_empty=True)
    reasons = {skip.reason for skip in dataset.skipped}
    takes_empty = f"`?{ACCEPT_EMPTY}` after the source takes those without interactions or results"
    hints = [takes_empty] if any(reason.endswith((NO_INTERACTION, NO_RESULT)) for reason in reasons) else []
    hints += [FORMS] if generic.NO_SESSION in reasons else []
    try:
        return read_whole(shown, lambda: dataset, "session that can be judged", may_be_empty=may_be_empty)
    except SourceError as error:
        raise SourceError("; ".join((str(error), *hints))) from error


def holds_sessions(source: str) -> bool:
    """Tell whether a file or folder holds a session that can be judged."""
    try:
        return _exists(source) and bool(read_dataset(source, may_be_empty=True).samples)
    except SourceError:
        return False


def _split(source: str) -> tuple[str, bool]:
    """Split `accept_empty` off a source, and read it. Raises SourceError for any other value or parameter of a path."""
    path, mark, parameters = source.rpartition("?")
    if not mark or ("://" not in source and _exists(source)):
        return source, False
    given = parameters.split("&")
    rest = [each for each in given if each != ACCEPT_EMPTY]
    if "://" not in source and rest:
        raise SourceError(
            f"the dataset source {source!r} takes no parameter {rest[0]!r}: sessions take `{ACCEPT_EMPTY}`"
        )
    return f"{path}?{'&'.join(rest)}" if rest else path, len(rest) < len(given)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # no file can be named so
        return False


def watermark(source: str) -> Any:
    """Read what changes when a source does: of a database its sessions by state, of files their times and sizes.

    None for an API, whose polls list what is new. Raises SourceError where a database cannot be asked.
    """
    source, _ = _split(source)
    if "://" in source:
        require_url(source)
        if _is_api(source):
            return None
        with database.open_url(source) as rows:
            return tarsy_live.mark(rows) if tarsy_live.is_todays(rows) else [dict(row) for row in rows(_CHANGES, {})]
    path = STARTER if source == "starter" else Path(source)
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")  # a database's log lies beside it
    return sorted((str(file), *_stamp(file)) for file in files)


def _is_api(source: str) -> bool:
    return "://" in source and source.partition("://")[0] in API


def require_url(source: str) -> None:
    """Raise SourceError where a source is a URL that can never be read, whether its database is there or not."""
    source, _ = _split(source)
    if _is_api(source):
        tarsy_live.require_api(source)
    elif "://" in source and source.partition("://")[0] in URLS:
        database.require_connectable(source)
    elif "://" in source:
        shown = database.hide_password(source)
        raise SourceError(f"the dataset source {shown!r} is no postgresql:// URL, and no https:// address of TARSy")


def _stamp(file: Path) -> tuple[int, int]:
    """Read when a file was changed, and its size; zeros for one that has gone."""
    try:
        status = file.stat(follow_symlinks=False)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def sample_of(session: Session, dataset: str) -> Sample:
    """Build the sample of a session."""
    return Sample(SUITE, dataset, session.session_id, dump(session), category=session.alert_type)


@generic.refusing()
def read_body(body: Any) -> Session:
    """Read the session of one decoded JSON body, in any of the known forms. Raises RefusedError otherwise."""
    generic.require_flat(body)
    if not isinstance(body, dict):
        raise RefusedError(generic.NO_SESSION)
    if "stages" in body and "session_interactions" not in body:  # else a list of calls without its session
        session = read_detail(body) if "session_id" in body or "id" not in body else read_api_detail(body)
    elif "messages" in body:
        session = generic.read_generic(body)
    elif "final_analysis" in body and "session_id" in body:
        session = read_final_analysis(body)
    else:
        raise RefusedError(generic.NO_SESSION)
    require_whole(body, session)
    return session


def _read_path(source: str, accepts_empty: bool) -> Dataset:
    path = STARTER if source == "starter" else Path(source)
    if not path.exists():
        raise SourceError(
            f"there is no dataset source {source!r}: give `starter`, a folder or file of sessions (.json, .jsonl), "
            f"a TARSy database file ({', '.join(SQLITE)}) or a postgresql:// URL"
        )
    if path.is_dir():
        return _dataset(
            path.resolve().name, _from_folder(path, Files(path, LARGEST_JSON), _repeated(path)), accepts_empty
        )
    if path.suffix.lower() not in (".json", *LINES, *SQLITE):
        raise SourceError(f"the dataset source {source!r} is of no known kind: sessions come as .json, .jsonl or .db")
    return _dataset(path.stem, _from_file(path, Files(path, LARGEST_JSON), path.stem), accepts_empty)


def _dataset(name: str, sessions: Iterator[Found], accepts_empty: bool) -> Dataset:
    """Collect the sessions in the order in which they were found; of two bodies of one session, the fuller one."""
    kept: dict[str, tuple[str, Session]] = {}
    skipped: list[Skipped] = []
    labels: list[Label] = []
    for where, each in sessions:
        if isinstance(each, Skipped):
            skipped.append(each)
        elif isinstance(each, list):
            labels += each
        elif not (any(each.interactions) or each.final_analysis or each.error):
            skipped.append(Skipped(where, NOTHING_TO_JUDGE))
        else:
            fuller, lesser = (where, each), kept.get(each.session_id)
            if lesser is not None and _told(each) <= _told(lesser[1]):
                fuller, lesser = lesser, fuller
            kept[each.session_id] = fuller
            if lesser is not None:
                skipped.append(Skipped(lesser[0], ANOTHER_BODY))
    for where, session in [] if accepts_empty else list(kept.values()):
        unanswered, calls = _unanswered(session), sum(1 for _ in session.tool_calls)
        if unanswered or not any(session.interactions):
            reason = f"{unanswered} of {calls} {NO_RESULT}" if unanswered else NO_INTERACTION
            skipped.append(Skipped(where, reason, as_payload(session.session_id)))
            del kept[session.session_id]
    dataset = as_payload(name)
    samples = tuple(sample_of(session, dataset) for _, session in kept.values())
    return Dataset(dataset, samples, tuple(skipped), labels=tuple(dict.fromkeys(labels)))


def _unanswered(session: Session) -> int:
    """Count the tool calls of a completed session that nothing answers; an agent's last one if no call is answered."""
    if session.status != "completed":
        return 0
    calls = list(session.tool_calls)
    unanswered = [each for each in calls if each.result is None and each.error is None]
    if len(unanswered) == len(calls):
        return len(calls)
    lasts = {id(agent.interactions[-1]) for agent in session.agents if agent.interactions}
    return sum(1 for each in unanswered if id(each) not in lasts)


def _told(session: Session) -> tuple[int, int]:
    return sum(1 for _ in session.tool_calls), sum(1 for _ in session.interactions)


def _repeated(folder: Path) -> frozenset[tuple[str, bool]]:
    """Find the names that several files in the folder and below have, each with whether these have lines."""
    files = (file for file in folder.rglob("*") if file.suffix.lower() in (".json", *LINES))
    counted = Counter((file.stem, file.suffix.lower() in LINES) for file in files)
    return frozenset(name for name, count in counted.items() if count > 1)


def _from_folder(folder: Path, files: Files, repeated: frozenset[tuple[str, bool]]) -> Iterator[Found]:
    if is_trace(folder, files):
        yield from _from_bodies(folder, files)
        return
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            if not (entry / "_delta_log").is_dir():  # a lake may lie in the folder, and grows with each reading
                yield from _from_folder(entry, files, repeated)
        elif entry.is_dir():
            yield entry.name, Skipped(_place(entry, files), LINKED_FOLDER, NOT_READ)
        elif entry.suffix.lower() in (".json", *LINES, *SQLITE):
            below = PurePosixPath(_place(entry, files)).with_suffix("").as_posix()
            name = below if (entry.stem, entry.suffix.lower() in LINES) in repeated else entry.stem
            try:
                yield from _from_file(entry, files, name)
            except SourceError as error:  # of this file alone, also of a database of something else
                reason = error.reason if isinstance(error, FileRefusedError) else UNREADABLE
                yield entry.name, Skipped(_place(entry, files), reason, NOT_READ)


def _place(path: Path, files: Files) -> str:
    """Name a file or folder by its path in the source: names alone repeat from folder to folder."""
    below = path.relative_to(files.root)
    return as_payload(below.as_posix() if below.parts else path.name)


def _from_file(path: Path, files: Files, name: str) -> Iterator[Found]:
    """Yield the sessions of a file; `name` is for those of its histories that have no id."""
    kind, place = path.suffix.lower(), _place(path, files)
    if kind in SQLITE:
        with database.open_sqlite(files.check(path, LARGEST_IN_ALL), files) as rows:
            yield from _from_rows(place, rows)
    elif kind in LINES:
        exported: list[Any] = []  # an exporter of spans writes a line for each batch, and a trace spreads over lines
        for record in read_table(files.check(path, LARGEST_IN_ALL), ()):
            line = record.where.rpartition(":")[2]
            where = f"{place}:{line}"
            if isinstance(record, Skipped):
                yield where, replace(record, where=where)
                continue
            if isinstance(spans := record.values.get("resourceSpans"), list):
                exported += spans
                continue
            for each in _bodies(record.values, f"{name}-{line}"):
                yield where, _read(where, each)
        if exported:
            for number, body in enumerate(_bodies({"resourceSpans": exported}, name)):
                where = f"{place}[{number}]"
                yield where, _read(where, body)
    else:
        yield from _from_json(path, place, files, name)


def _from_json(path: Path, place: str, files: Files, name: str) -> Iterator[Found]:
    content = files.read(path)
    try:
        document = decode_once(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        reason = NOT_UTF8 if isinstance(error, UnicodeDecodeError) else reason_of(error)
        yield place, Skipped(place, reason, as_payload(content.decode("utf-8", "surrogateescape")))
    else:
        try:
            histories = bodies(document, name)
        except RefusedError as refused:
            yield place, _left_out(place, refused, document)
            return
        documents = document if histories is None else histories
        numbered = enumerate(documents) if isinstance(documents, list) else [(None, documents)]
        for number, body in numbered:
            where = place if number is None else f"{place}[{number}]"
            yield where, _read(where, body)


def _bodies(body: Mapping[str, Any], name: str) -> list[Any]:
    """List the sessions of a line: those of a history, or the line itself."""
    try:
        found = bodies(body, name)
    except RefusedError:
        return [body]
    return [body] if found is None else list(found)


def _from_bodies(folder: Path, files: Files) -> Iterator[Found]:
    place = _place(folder, files)
    try:
        bodies = saved_bodies(folder, files)
    except FileRefusedError as refused:
        yield place, Skipped(place, refused.reason, NOT_READ)
        return
    except RefusedError as refused:
        yield place, _left_out(place, refused, None)
        return
    yield place, _refusable(place, lambda: read_bodies(bodies), None)
    yield place, labels_of({**bodies.detail, "score": bodies.score})


def _from_url(url: str, poll: Poll) -> Iterator[Found]:
    require_url(url)
    if _is_api(url):
        with tarsy_live.open_api(url) as api:
            yield from _from_product(tarsy_live.api_name(url), api, poll)
        return
    with database.open_url(url) as rows:
        if tarsy_live.is_todays(rows):
            yield from _from_product(database.database_name(url), tarsy_live.Tables(rows), poll)
        else:
            yield from _from_rows(database.database_name(url), rows)


def _from_product(name: str, product: Product, poll: Poll) -> Iterator[Found]:
    for item, found in tarsy_live.read_product(product, poll):
        where = f"{name}: {as_payload(str(item.get('id')))}"
        if found is not None:
            yield where, found if isinstance(found, Session) else _left_out(where, found, item.get("id"))
        yield where, labels_of(item)


def _from_rows(name: str, rows: database.Rows) -> Iterator[Found]:
    for session_id, session in database.read_sessions(rows):
        where = f"{name}: {as_payload(session_id)}"
        yield where, session if isinstance(session, Session) else _left_out(where, session, session_id)


def _read(where: str, body: Mapping[str, Any]) -> Session | Skipped:
    return _refusable(where, lambda: read_body(body), body)


def _refusable(where: str, read: Callable[[], Session], body: Any) -> Session | Skipped:
    try:
        return read()
    except RefusedError as refused:
        return _left_out(where, refused, body)


def unfinished(dataset: Dataset) -> frozenset[str]:
    """List the ids of the sessions that were left out because they are not over."""
    places = (skip.where for skip in dataset.skipped if skip.reason == generic.STILL_RUNNING)
    return frozenset(place.partition(": ")[2] for place in places)


def _left_out(where: str, refused: RefusedError, body: Any) -> Skipped:
    if refused.reason == generic.STILL_RUNNING and isinstance(body, Mapping):
        where = f"{where}: {as_payload(str(body.get('session_id')))}"
    payload = None if refused.by_design else as_payload(_raw(body))
    return Skipped(where, refused.reason, payload)


def _raw(body: Any) -> str:
    try:
        return generic.as_json(body)
    except RecursionError:
        return "(nested too deeply to be shown)"
