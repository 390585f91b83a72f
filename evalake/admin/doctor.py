"""Doctor: checks whether the Prefect server, its workers and this machine can do the scheduled work."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import httpx
from packaging.requirements import Requirement
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.settings import get_current_settings

from evalake.admin.maintain import OURS, TAG, only
from evalake.contracts.tables import RUNS
from evalake.core.configuration import Configuration
from evalake.core.errors import EvalakeError
from evalake.core.redaction import redact
from evalake.reports.wording import count_of
from evalake.storage.lake import Lake
from evalake.storage.objects import require_write_access
from evalake.tasks.runtime.server import ServerError, require_server

POOL = "evalake"
AUTOMATION_PREFIX = "evalake: "
FIRST_MINUTE = timedelta(seconds=75)  # the scheduler looks at new deployments every 5 s, and at all of them every 60 s
LATEST_HEARTBEAT = timedelta(seconds=90)  # three of a worker's heartbeats
CLOCKS_APART = timedelta(seconds=5)
VERSION_OF_NETWORK = 4  # of Landlock: the first that knows TCP
LITTLE_BYTES, TOO_LITTLE_BYTES = 5 * 10**9, 5 * 10**8


class Level(StrEnum):
    """The severity of a finding. A hint is no reason to fail."""

    OK = "ok"
    HINT = "hint"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The finding of a check, and the mend of a problem."""

    level: Level
    message: str
    mend: str = ""


_ok, _hint, _problem = (partial(Diagnosis, level) for level in (Level.OK, Level.HINT, Level.PROBLEM))


@dataclass(frozen=True)
class Place:
    """The examined server, which Prefect's settings name, and the lake and configuration of this machine.

    While a deployment is being made, workers are still to be started, and the scheduler has not had its turn. Where the
    servers are new, workers were started with them that may not have asked for work yet.
    """

    lake: Lake
    configuration: Configuration
    deploying: bool = False
    servers_are_new: bool = False

    @cached_property
    def client(self) -> SyncPrefectClient:
        """The client of the server; it sends nothing until it is used."""
        return get_client(sync_client=True)

    @cached_property
    def deployments(self) -> list[Any]:
        """The deployments of evalake on the server."""
        return self.client.read_deployments(deployment_filter=OURS)

    @cached_property
    def workers(self) -> list[Any]:
        """The workers that have ever polled the pool, the one that was heard of last first."""
        workers = self.client.read_workers_for_work_pool(POOL)
        return sorted(workers, key=lambda worker: worker.last_heartbeat_time or datetime.min.replace(tzinfo=UTC))[::-1]

    def soon(self, message: str, mend: str) -> Diagnosis:
        """Report a problem, or only a hint where it should be gone soon: after a deployment, or the servers' start."""
        if self.servers_are_new:
            return _hint(message, "the servers are new: look again with `evalake doctor` in a minute")
        return Diagnosis(Level.HINT if self.deploying else Level.PROBLEM, message, mend)


@dataclass(frozen=True, slots=True)
class Check:
    """One question; `of_server` where the answer does not depend on the machine that asks."""

    look: Callable[[Place], Diagnosis]
    of_server: bool

    @property
    def name(self) -> str:
        """Its name, like `server version`."""
        return self.look.__name__.strip("_").replace("_", " ")


def examine(place: Place) -> Iterator[tuple[Check, Diagnosis]]:
    """Make one check after the other, and yield each with its finding.

    This machine comes first, then the server, whose further checks are left out where it cannot be used. While a
    deployment is being made, only the server is looked at. A check that cannot be made is a problem, and keeps no
    other from being made.
    """
    reached = True
    for check in CHECKS:
        if (check.of_server and not reached) or (place.deploying and not check.of_server):
            continue
        result = _look(check, place)
        if check.look is _server:
            reached = result.level is Level.OK
        yield check, result


def _look(check: Check, place: Place) -> Diagnosis:
    try:
        return check.look(place)
    except EvalakeError as error:
        return _problem(str(error))
    except (httpx.HTTPError, PrefectException, OSError) as error:
        lines = str(redact(str(error))).splitlines() or [type(error).__name__]
        return _problem(f"the check failed: {lines[0]}", "look at the log of the Prefect server")


def _server(place: Place) -> Diagnosis:
    url = get_current_settings().api.url
    if not url:
        mend = "for schedules start one (`evalake up`), or name it with PREFECT_API_URL"
        if place.deploying:
            return _problem("no Prefect server is named, so nothing can be deployed", mend)
        works = "commands work, each with a server of its own; nothing runs on a schedule"
        return _hint(f"no Prefect server is named: {works}", mend)
    try:
        require_server()
    except ServerError as error:
        return _problem(str(error))
    return _ok(f"answers at {redact(url)}")


def _server_version(place: Place) -> Diagnosis:
    theirs, ours = place.client.request("GET", "/admin/version").json(), version("prefect")
    if theirs == ours:
        return _ok(f"Prefect {ours} here and there")
    same_minor = theirs.split(".")[:2] == ours.split(".")[:2]
    return Diagnosis(
        Level.HINT if same_minor else Level.PROBLEM,
        f"the server has Prefect {theirs}, this machine {ours}",
        "install evalake of one version, from its requirements.lock, on the server and on all workers",
    )


def _clock(place: Place) -> Diagnosis:
    before = datetime.now(UTC)
    answer = place.client.request("GET", "/admin/version")
    after = datetime.now(UTC)
    theirs = parsedate_to_datetime(answer.headers["date"])
    # The header has whole seconds, and was written some time between.
    apart = max(before - theirs - timedelta(seconds=1), theirs - after, timedelta())
    if apart <= CLOCKS_APART:
        return _ok("this machine's clock and the server's agree")
    message = f"this machine's clock and the server's are {apart.total_seconds():.0f} s apart"
    return _problem(message, "set both by NTP: runs would start too early or late, and seem lost")


def _deployments(place: Place) -> Diagnosis:
    if not place.deployments:
        return _problem("nothing of evalake is deployed", "run `make deploy`")
    paused = [each.name for each in place.deployments if each.paused]
    if paused:
        message = f"{len(paused)} of {len(place.deployments)} deployments are paused: {_some(paused)}"
        return _hint(message, "`prefect deployment schedule resume` lets them run again")
    return _ok(f"{len(place.deployments)} found")


def _scheduler(place: Place) -> Diagnosis:
    def next_run(deployment: Any) -> datetime | None:
        later = {"after_": datetime.now(UTC) - timedelta(minutes=1)}
        waiting = {"state": {"type": {"any_": [StateType.SCHEDULED]}}, "expected_start_time": later}
        runs = place.client.read_flow_runs(
            deployment_filter=only(deployment),
            flow_run_filter=FlowRunFilter.model_validate(waiting),
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=1,
        )
        return runs[0].expected_start_time if runs else None

    timed = [each for each in place.deployments if not each.paused and any(one.active for one in each.schedules)]
    if not timed:
        return _hint("no deployment has an active schedule", "runs start by hand only, or `make deploy`")
    planned = {each.name: next_run(each) for each in timed}
    if lacking := [name for name, run in planned.items() if run is None]:
        message = f"no run is planned for {len(lacking)} of {len(timed)} schedules: {_some(lacking)}"
        changed = max(one.updated or one.created for each in timed for one in each.schedules if each.name in lacking)
        if place.deploying or datetime.now(UTC) - changed < FIRST_MINUTE:
            return _hint(message, "they are new: look again with `evalake doctor` in a minute")
        log = "look for errors in the server's log, and install it from requirements.lock"
        return _problem(
            message, f"the server's scheduler does not work: {log} (with SQLAlchemy 2.1 Prefect 3.8 plans nothing)"
        )
    first = min(run for run in planned.values() if run is not None)
    return _ok(f"{len(timed)} schedules have runs planned, the next at {first:%Y-%m-%d %H:%M} UTC")


def _late_runs(place: Place) -> Diagnosis:
    late = FlowRunFilter.model_validate({"state": {"name": {"any_": ["Late"]}}, "tags": {"all_": [TAG]}})
    runs = place.client.read_flow_runs(flow_run_filter=late, sort=FlowRunSort.EXPECTED_START_TIME_ASC)
    if not runs:
        return _ok("no run is late")
    message = f"{len(runs)} runs are late, the first since {runs[0].expected_start_time:%Y-%m-%d %H:%M} UTC"
    return place.soon(message, f"start a worker, or one more: `evalake prefect worker start --pool {POOL}`")


def _worker(place: Place) -> Diagnosis:
    start = f"start one with `evalake prefect worker start --pool {POOL}`, with EVALAKE_HOME and EVALAKE_LAKE set"
    try:
        pool = place.client.read_work_pool(POOL)
    except ObjectNotFound:
        return _problem(f"there is no work pool {POOL}", "run `make deploy`")
    if pool.is_paused:
        return _problem(f"the work pool {POOL} is paused, so nothing runs", f"`prefect work-pool resume {POOL}`")
    if not place.workers:
        return place.soon(f"no worker has polled the pool {POOL} yet", start)
    now = datetime.now(UTC)
    alive = [each for each in place.workers if now - each.last_heartbeat_time < LATEST_HEARTBEAT]
    if not alive:
        name, ago = place.workers[0].name, _ago(now - place.workers[0].last_heartbeat_time)
        return place.soon(f"no worker polls the pool {POOL}; {name} was last heard of {ago}", start)
    return _ok(f"{len(alive)} polling the pool {POOL}: {_some([each.name for each in alive])}")


def _notifications(place: Place) -> Diagnosis:
    ours = [each for each in place.client.read_automations() if each.name.startswith(AUTOMATION_PREFIX)]
    telling = [each for each in ours if any(action.type == "send-notification" for action in each.actions)]
    if not telling:
        mend = "name a receiver, like EVALAKE_NOTIFY_WEBHOOK=URL, and run `make deploy`"
        return _hint("failed runs and silent workers notify nobody", mend)
    if off := [each.name for each in ours if not each.enabled]:
        return _hint(f"{len(off)} automations are off: {_some(off)}", "switch them on in the UI")
    return _ok(f"{len(telling)} automations notify of failures")


def _versions(_place: Place) -> Diagnosis:
    needed = [
        each
        for each in map(Requirement, requires("evalake") or ())
        if each.marker is None or each.marker.evaluate({"extra": ""})
    ]
    off = [
        f"{each.name} {installed or 'none'} (needs {each.specifier})"
        for each in needed
        if not (installed := _installed(each.name)) or not each.specifier.contains(installed, prereleases=True)
    ]
    if off:
        return _problem(f"versions out of bounds: {_some(off)}", "install from requirements.lock")
    return _ok(f"{len(needed)} libraries have versions within their bounds")


def _installed(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _lake(place: Place) -> Diagnosis:
    require_write_access(place.lake)
    if place.lake.exists(RUNS):
        return _ok(f"{place.lake.uri} can be read and written")
    mend = "the first run creates its tables; the workers' lake is named by their EVALAKE_LAKE"
    return _hint(f"{place.lake.uri} has no run yet", mend)


def _disk(place: Place) -> Diagnosis:
    folders = {"PREFECT_HOME": get_current_settings().home}
    if "://" not in place.lake.uri:
        folders = {"the lake": Path(place.lake.address), **folders}
    free = {name: shutil.disk_usage(_existing(folder)).free for name, folder in folders.items()}
    scarce = {name: size for name, size in free.items() if size < LITTLE_BYTES}
    sizes = ", ".join(f"{size / 1e9:.1f} GB for {name}" for name, size in (scarce or free).items())
    if not scarce:
        return _ok(f"free: {sizes}")
    level = Level.PROBLEM if min(scarce.values()) < TOO_LITTLE_BYTES else Level.HINT
    return Diagnosis(
        level, f"little room: {sizes}", "make room, or move the lake; `evalake maintain` removes old files"
    )


def _sql(_place: Place) -> Diagnosis:
    from evalake.storage.sql.start import landlock_version

    if (known := landlock_version()) >= VERSION_OF_NETWORK:
        return _ok(f"the kernel confines queries (Landlock {known})")
    left = "connections of" if known else "files and connections of"
    message = f"the kernel does not confine queries: nothing but the engine itself guards the {left} this user"
    return _hint(message, "let only people whom you trust write SQL, or use Linux 6.7 with Landlock")


def _keys(place: Place) -> Diagnosis:
    from evalake.models.routes import find_route
    from evalake.tasks.runtime.server import read_secret

    models = sorted({*place.configuration.models, *_deployed_models(place)})
    if not models:
        return _ok("no model is configured: the embedded baselines need no key")
    unusable = []
    for model in models:
        try:
            find_route(model, place.configuration, read_secret)
        except EvalakeError as error:
            unusable.append(str(error))
    if unusable:
        mend = "do what each sentence asks; keys belong in the environment of the worker, or in Secret blocks"
        return _problem(f"{len(unusable)} of {len(models)} models: {'; '.join(unusable[:3])}", mend)
    return _ok(f"the keys of {count_of(len(models), 'model')} are set")


def _deployed_models(place: Place) -> set[str]:
    """List the models that deployments name; none where no server can be asked."""
    if _server(place).level is not Level.OK:
        return set()
    named = [each.parameters.get(what) or [] for each in place.deployments for what in ("models", "judges")]
    return {str(model) for names in named if isinstance(names, list) for model in names}


def _existing(folder: Path) -> Path:
    return next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _ago(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes} min ago" if minutes < 120 else f"{minutes // 60} h ago"


_OF_MACHINE = (_versions, _lake, _disk, _keys, _sql)
_OF_SERVER = (_server, _server_version, _clock, _deployments, _scheduler, _late_runs, _worker, _notifications)
CHECKS = (*(Check(look, False) for look in _OF_MACHINE), *(Check(look, True) for look in _OF_SERVER))
