"""The scoring API under load: 200 clients that read, and 50 subscribers that are told of sessions being scored."""

import asyncio
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import aiohttp
import psutil
from websockets.asyncio.client import connect

from chaos.outcome import Outcome
from tests.e2e.processes import PrefectStack
from tests.integration.server.services import Place, Service, deploy, start
from tests.servers.model_server import ModelServer

CLIENTS = 200
SUBSCRIBERS = 50
PAUSE = 2.0  # seconds that a client takes to read what it was shown, on average
SETTLING = 0.3  # of the time, after which the memory has to stay where it is
SLOWEST_MS = 100.0  # of 99 reads of a hundred
GROWTH = 1.1  # of the memory
SESSIONS = tuple(f"session-{number}" for number in range(300))
MOVES = ("in_progress", "completed")
TOLD = ("scoring.pending", "scoring.started", "scoring.completed")
READS = (
    "/api/v1/status",
    "/api/v1/scoring/sessions/{}/score",
    "/api/v1/scoring/sessions/{}/history",
    "/api/v1/sessions?page_size=25",
    "/api/v1/sessions/{}",
)


@dataclass
class Seen:
    """What clients and subscribers saw, and what the service took."""

    milliseconds: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0  # of the service
    errors: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)  # sessions, in the order in which they were scored
    told: list[list[tuple[str, str]]] = field(default_factory=list)  # by subscriber: session and event
    memory: list[int] = field(default_factory=list)  # once settled, and at the end
    files: list[int] = field(default_factory=list)  # before anybody came, and after all had gone


def campaign(folder: Path, seed: int, seconds: float) -> Iterator[Outcome]:
    """Put the API under load until the time is over, and compare what was seen with what is promised."""
    with ModelServer() as judge, PrefectStack(folder / "prefect") as stack:
        deploy(stack)  # without a worker: this campaign sets the states of scorings itself
        (folder / "place").mkdir()
        place = Place(folder / "place", judge)
        place.write(*SESSIONS)
        service = start(stack, place)
        try:
            seen = asyncio.run(_load(service, place, random.Random(seed), seconds))
        finally:
            service.stop()
    slow = quantiles(seen.milliseconds, n=100)[98]
    expected = [(session, event) for session in seen.asked for event in TOLD]
    lost = sum(told != expected for told in seen.told)
    broken = [*sorted(seen.errors)[:3]]
    if lost:
        broken.append(f"{lost} subscribers were not told all in order")
    if slow > SLOWEST_MS:
        broken.append(f"99 % of reads took up to {slow:.0f} ms, half of them {median(seen.milliseconds):.0f} ms")
    if seen.memory[-1] > seen.memory[0] * GROWTH:
        broken.append(f"memory grew from {seen.memory[0]} to {seen.memory[-1]} MB")
    if seen.files[-1] > seen.files[0] + 2:
        broken.append(f"open files grew from {seen.files[0]} to {seen.files[-1]}")
    held = (
        f"99 % of {len(seen.milliseconds)} reads within {slow:.0f} ms, {len(expected)} events told to each of "
        f"{SUBSCRIBERS} subscribers, memory {seen.memory[0]} to {seen.memory[-1]} MB, no connection left open; "
        f"the service took {seen.cpu_seconds:.0f} s of a processor"
    )
    yield Outcome(f"API: {CLIENTS} clients for {seconds:.0f} s", CLIENTS + SUBSCRIBERS, held, "; ".join(broken))


async def _load(service: Service, place: Place, chance: random.Random, seconds: float) -> Seen:
    process, seen = psutil.Process(service.process.popen.pid), Seen()
    await asyncio.to_thread(service.score, SESSIONS[0])
    seen.files.append(process.num_fds())
    cpu = sum(process.cpu_times()[:2])
    until = time.monotonic() + seconds
    ready, over = asyncio.Barrier(SUBSCRIBERS + 1), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(SUBSCRIBERS):
            seen.told.append([])
            group.create_task(_listen(service, seen.told[-1], ready, over))
        await ready.wait()
        clients = [group.create_task(_read(service, seen, chance, until)) for _ in range(CLIENTS)]
        moving = group.create_task(_move(service, place, seen, until))
        await asyncio.sleep(SETTLING * seconds)
        seen.memory.append(process.memory_info().rss // 2**20)
        await asyncio.wait([*clients, moving])
        seen.memory.append(process.memory_info().rss // 2**20)
        await _until_told(seen)
        over.set()
    seen.cpu_seconds = sum(process.cpu_times()[:2]) - cpu
    service.http.close()
    for _ in range(100):  # connections are closed in their own time
        if (left := process.num_fds()) <= seen.files[0]:
            break
        await asyncio.sleep(0.1)
    seen.files.append(left)
    return seen


async def _read(service: Service, seen: Seen, chance: random.Random, until: float) -> None:
    async with aiohttp.ClientSession(service.url) as session:
        await asyncio.sleep(chance.uniform(0, 2 * PAUSE))
        while time.monotonic() < until:
            path = chance.choice(READS).format(chance.choice(SESSIONS))
            began = time.perf_counter()
            async with session.get(path) as answer:
                await answer.read()
                if answer.status not in (200, 404):
                    seen.errors.add(f"{path.partition('?')[0]} answered {answer.status}")
            seen.milliseconds.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(chance.uniform(0, 2 * PAUSE))


async def _move(service: Service, place: Place, seen: Seen, until: float) -> None:
    """Have one session after the other scored, as workers would."""
    for session in SESSIONS:
        if time.monotonic() > until and seen.asked:
            return
        score_id = (await asyncio.to_thread(service.ask, session)).json()["score_id"]
        seen.asked.append(session)
        for state in MOVES:
            await asyncio.to_thread(place.set, score_id, state)
            await _told_of(seen, session, TOLD[MOVES.index(state) + 1])


async def _told_of(seen: Seen, session: str, event: str) -> None:
    """Wait for the first subscriber to be told, so that a state is not passed over because the next one came."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not any((session, event) in told[-3:] for told in seen.told):
        await asyncio.sleep(0.05)


async def _until_told(seen: Seen) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(len(told) < len(seen.asked) * len(TOLD) for told in seen.told):
        await asyncio.sleep(0.1)


async def _listen(service: Service, told: list[tuple[str, str]], ready: asyncio.Barrier, over: asyncio.Event) -> None:
    async with connect(service.socket_url) as socket:
        await socket.send(json.dumps({"type": "subscribe", "channel": "sessions"}))
        while json.loads(await socket.recv()).get("type") != "subscribed":
            pass
        await ready.wait()
        ending = asyncio.create_task(over.wait())
        while not over.is_set():
            coming = asyncio.create_task(socket.recv())
            await asyncio.wait([coming, ending], return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                return
            event = json.loads(coming.result())
            if event.get("type") in TOLD:
                told.append((event["session_id"], event["type"]))
