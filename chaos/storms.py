"""A provider that refuses, fails, drips, and answers what no model would: every call ends in one clear row."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.outcome import Outcome
from evalake.contracts.tables import CALL_FAILURES, RUN_ITEMS
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.solidity_audit.contract import RESULTS as AUDITS
from tests.e2e.processes import PrefectStack
from tests.integration.flows.workplace import MODEL, OTHER, Workplace
from tests.servers.model_server import ModelServer

EACH = 4  # calls that meet each storm that no retry overcomes
ROOM = 600  # megabytes beyond what a run without any storm takes: replies of 32 MB are on their way several at once
LONGEST = 120.0  # seconds that a run may take
LIMITS = "concurrency = 8\nattempts = 3\ntimeout_seconds = 10\nbreaker_failures = 10000\n"
BLOCK = '{"action": "BLOCK", "reason": "as told", "confidence": 0.9}'
DEEP = 10_000
FINDINGS = 100_000


@dataclass(frozen=True)
class Storm:
    """Faults that a call meets before its reply, endless where `times` is 0; `ends`: the allowed (verdict, failure)."""

    ends: frozenset[tuple[str | None, str | None]]
    faults: tuple[Mapping[str, Any], ...] = ()
    reply: str = BLOCK
    calls: int = EACH


_ANSWERED = frozenset({("BLOCK", None)})
_GIVEN_UP = frozenset({(None, "malformed_response")})
_TIMED_OUT = frozenset({("TIMEOUT_ERROR", "timeout")})
# Half of all calls meet a 429, a third a 503. Where the machine is busy, a huge reply takes longer than a call may.
STORMS: Mapping[str, Storm] = {
    "429 with Retry-After": Storm(_ANSWERED, ({"kind": "rate_limit", "retry_after": 0.2},), calls=30),
    "429 without Retry-After": Storm(_ANSWERED, ({"kind": "rate_limit"},), calls=30),
    "503": Storm(_ANSWERED, ({"kind": "server_error", "status": 503},), calls=40),
    "drips without end": Storm(_TIMED_OUT, ({"kind": "slow_drip", "times": 0},)),
    "reply of 50 MB": Storm(_GIVEN_UP | _TIMED_OUT, ({"kind": "huge", "times": 0},)),
    "gzip bomb of 1 GB": Storm(_GIVEN_UP | _TIMED_OUT, ({"kind": "gzip_bomb", "times": 0},)),
    "invalid UTF-8": Storm(_GIVEN_UP | {("FORMAT_ERROR", None)}, ({"kind": "invalid_utf8", "times": 0},)),
    "JSON 10,000 deep": Storm(frozenset({("FORMAT_ERROR", None)}), reply='{"action":' * DEEP),
}


@dataclass(frozen=True)
class Done:
    """What a command took, and what it printed."""

    code: int
    seconds: float
    megabytes: int
    said: str


def campaign(folder: Path, seed: int, seconds: float) -> Iterator[Outcome]:
    """Run a dataset through all storms at once, in an order drawn by the seed; another run reads 100,000 findings."""
    with PrefectStack(folder / "prefect") as stack:
        yield from _through_all(stack, folder, seed, time.monotonic() + seconds)


def _through_all(stack: PrefectStack, folder: Path, seed: int, until: float) -> Iterator[Outcome]:
    quiet = _run(stack, folder / "quiet", {}, seed)[1].megabytes
    injected, broken = Counter[str](), dict[str, list[str]]()
    most = slowest = 0.0
    for number in range(1000):
        if number and time.monotonic() > until:
            break
        met, done = _run(stack, folder / str(number), STORMS, seed + number)
        ends = _ends(Lake(str(folder / str(number) / "lake")))
        most, slowest = max(most, done.megabytes), max(slowest, done.seconds)
        for storm, samples in met.items():
            injected[storm] += len(samples)
            problems = [f"{each} ended as {ends.get(each)}" for each in samples if not _is_clear(storm, ends.get(each))]
            broken.setdefault(storm, []).extend([*problems, *_beyond(done, quiet)])
    took = f"the run took {most:.0f} MB ({quiet} without any storm) and {slowest:.0f} s at most"
    for storm, times in injected.items():
        yield Outcome(f"provider: {storm}", times, f"a clear row for each; {took}", "; ".join(broken[storm]))
    yield _findings(stack, folder / "findings", quiet)


def _beyond(done: Done, quiet: int) -> list[str]:
    if done.megabytes <= quiet + ROOM and done.seconds <= LONGEST and "Traceback" not in done.said:
        return []
    return [f"the run took {done.megabytes} MB and {done.seconds:.0f} s: {done.said[-200:]}"]


def _run(stack: PrefectStack, folder: Path, storms: Mapping[str, Storm], seed: int) -> tuple[dict[str, set[str]], Done]:
    """Run command_guard; returns the samples that met each storm, and what the run took."""
    folder.mkdir()
    order = [storm for storm in storms for _ in range(storms[storm].calls)]
    random.Random(seed).shuffle(order)
    met: dict[str, set[str]] = {}
    with ModelServer(keep_bodies=False) as server:
        server.rule(reply=BLOCK)
        for number, storm in enumerate(order):
            server.rule(contains=f"# {number:05d}", reply=storms[storm].reply, faults=storms[storm].faults)
            met.setdefault(storm, set()).add(f"s{number}")
        work = Workplace(folder, server)
        work.configure(batch_size=20, limits=LIMITS)
        dataset = work.dataset(len(order) or EACH)
        done = _evalake(stack, folder, "run", "command_guard", "--models", MODEL, "--dataset", dataset)
    return met, done


def _evalake(stack: PrefectStack, folder: Path, *arguments: str) -> Done:
    """Run the command; its memory is that of its own process, without those that it starts."""
    options = ["--lake", str(folder / "lake"), "--config", str(folder / "evalake.toml"), "--json"]
    words = [sys.executable, "-m", "evalake.cli", *arguments, *options]
    environment = {**os.environ, **stack.environment}
    began, log = time.monotonic(), folder / "said"
    with log.open("w") as file:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=file, stderr=file)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - began
    return Done(process.returncode, took, used.ru_maxrss // 1024, log.read_text(errors="replace"))


def _ends(lake: Lake) -> dict[str, tuple[str | None, str | None]]:
    """Read how each sample's call ended: its verdict, and the kind of failure after which it was given up."""
    results = lake.frame(RESULTS).select("sample_id", "verdict").collect()
    failures = lake.frame(CALL_FAILURES).select("prompt_hash", "kind").collect()
    items = lake.frame(RUN_ITEMS).select("sample_id", "prompt_hash").collect()
    all_of_them = items.join(failures, on="prompt_hash", how="left").join(results, on="sample_id", how="left")
    assert all_of_them.height == items.height, "an item has two rows"
    return {row["sample_id"]: (row["verdict"], row["kind"]) for row in all_of_them.to_dicts()}


def _is_clear(storm: str, end: tuple[str | None, str | None] | None) -> bool:
    return end in STORMS[storm].ends


def _findings(stack: PrefectStack, folder: Path, quiet: int) -> Outcome:
    """Run an audit whose judge names 100,000 findings in each of its replies."""
    folder.mkdir()
    finding = {"finding_id": 1, "classification": "HALLUCINATED", "reasoning": "as told"}
    with ModelServer(keep_bodies=False) as server:
        server.rule(reply='{"verdict": "vulnerable", "confidence": 0.5, "vulnerabilities": []}')
        server.rule(model="other", reply=json.dumps({"findings": [finding] * FINDINGS}))
        Workplace(folder, server).configure(limits=LIMITS)
        audit = ("run", "solidity_audit", "--models", MODEL, "--judges", OTHER, "--limit", str(EACH))
        done = _evalake(stack, folder, *audit)
    rows = Lake(str(folder / "lake")).frame(AUDITS).collect()
    broken = _beyond(done, quiet)
    if rows.height != EACH or rows["judge_error"].null_count():
        broken.append(f"{rows.height} rows of {EACH}, {rows['judge_error'].null_count()} without a reason")
    kinds = ", ".join(sorted(set(rows["judge_error"].drop_nulls())))
    held = f"a row for each, with its error ({kinds}); the run took {done.megabytes} MB and {done.seconds:.0f} s"
    return Outcome("provider: 100,000 findings in a judgement", rows.height, held, "; ".join(broken))
