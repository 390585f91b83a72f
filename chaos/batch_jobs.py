"""Batch jobs: `evalake run --batch` is killed after drawn steps, again and again, and comes to its end.

A step is a commit of jobs, of their requests or of replies, or a request to the provider. Each process is killed one
to MOST_STEPS steps on; where they leave nothing behind, the process after it may make one step more. The answer to the
first submission is lost, one request fails, one expires, and results come in reverse order, each twice.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from chaos.outcome import Outcome
from evalake.cli import terminal
from evalake.contracts.tables import BATCH_JOBS, BATCH_REQUESTS, CALLS
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.processes import PrefectStack
from tests.servers.model_server import ModelServer

FORMS = {"OpenAI": ("hosted_vllm/guard", "/v1"), "Anthropic": ("anthropic/claude-sonnet-4-5", "")}
SAMPLES = 3
MOST_STEPS = 5
WAITING, KILLED = 3, -signal.SIGKILL


def campaign(folder: Path, seed: int, seconds: float) -> Iterator[Outcome]:
    """Kill a run of each form after drawn steps, until it ends or the time is over; then it goes on unharmed."""
    until = time.monotonic() + seconds
    terminal.prepare()
    with PrefectStack(folder / "prefect") as stack:
        os.environ.update({**stack.environment, "ANTHROPIC_API_KEY": "key-of-the-campaign"})
        for number, form in enumerate(FORMS, start=1):
            over = until - seconds * (len(FORMS) - number) / len(FORMS)
            yield killed_again_and_again(folder / form, form, Random(f"{seed} {form}"), over)


def killed_again_and_again(place: Path, form: str, draw: Random, until: float) -> Outcome:
    """Repeat the command until it ends, and compare what was asked, paid and kept then."""
    place.mkdir(parents=True)
    model, path = FORMS[form]
    samples = [
        {"sample_id": f"s{n}", "command": f"cat /etc/shadow # {n:05d}", "label": "malicious"} for n in range(SAMPLES)
    ]
    (place / "commands.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    lake, codes = Lake(str(place / "lake")), list[int]()
    with ModelServer() as server:
        server.rule(reply='{"action": "BLOCK"}')
        (place / "evalake.toml").write_text(f'[models."{model}"]\napi_base = "{server.address}{path}"\n')
        jobs = server.batches
        jobs.expires, jobs.fails, jobs.drops = {"# 00001"}, {"# 00002"}, {"POST batches"}
        known, step = _there(lake, server), draw.randint(1, MOST_STEPS)
        while not codes or codes[-1] in (WAITING, KILLED):
            codes.append(_command(place, model, server.address, step if time.monotonic() < until else 0))
            before, known = known, _there(lake, server)
            step = draw.randint(1, MOST_STEPS) if known != before or codes[-1] == WAITING else step + 1
            jobs.expires = set() if jobs.paid else jobs.expires
        held = f"{SAMPLES} replies and results once each, none paid twice, nothing left at the provider"
        killed = codes.count(KILLED)
        broken = "; ".join(_wrong(lake, server, form, codes))
    return Outcome(f"batch jobs of {form}: SIGKILL after drawn steps", killed, held, broken)


def _there(lake: Lake, server: ModelServer) -> list[Any]:
    """Describe what steps have left behind."""
    jobs = lake.frame(BATCH_JOBS).sort("revision").group_by("job_id", maintain_order=True).last()
    requests = lake.frame(BATCH_REQUESTS).join(jobs, on="job_id", how="semi").sort("job_id", "request_id")
    counted = [sorted(each.collect()["state"]) for each in (jobs, requests)]
    at_provider = [job.state for job in server.batches.jobs.values()]
    return [*counted, lake.frame(CALLS).collect().height, at_provider, sorted(server.batches.files)]


def _wrong(lake: Lake, server: ModelServer, form: str, codes: list[int]) -> Iterator[str]:
    jobs = server.batches
    if codes[-1]:
        yield f"the last process ended with {codes[-1]}"
    calls, results = lake.frame(CALLS).collect(), lake.frame(RESULTS).collect()
    if not calls.height == calls["prompt_hash"].n_unique() == results.height == SAMPLES:
        yield f"{calls.height} replies to {calls['prompt_hash'].n_unique()} requests, {results.height} results"
    if [*jobs.paid.values()] != [1] * (SAMPLES - 1) or len(server.requests()) != 1:
        yield f"paid in jobs {sorted(jobs.paid.values())}, by calls {len(server.requests())}"
    states = lake.frame(BATCH_JOBS).sort("revision").group_by("job_id").last().collect()["state"]
    left = [*jobs.files, *(each for each in jobs.jobs if form == "Anthropic")]
    if set(states) != {"closed"} or left:
        yield f"jobs {states.to_list()}, at the provider {left}"


def _command(place: Path, model: str, address: str, step: int) -> int:
    """Run the command in a process that kills itself after a step; 0 kills nothing."""
    process = get_context("spawn").Process(target=run, args=(place, model, address, step))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def run(place: Path, model: str, address: str, at: int) -> None:
    """Be the command."""
    import httpx

    from evalake.cli.main import main
    from evalake.storage import batch_jobs, ledger
    from evalake.tasks import jobs

    steps = count(1)

    def killing(do: Callable[..., Any], is_step: Callable[..., bool]) -> Callable[..., Any]:
        def done(*given: Any, **named: Any) -> Any:
            result = do(*given, **named)
            if is_step(*given, **named) and next(steps) == at:
                print(f"killed after {do.__name__} {[str(each)[:80] for each in given[1:2]]}", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return done

    def asks_provider(_: Any, request: httpx.Request, **__: Any) -> bool:
        return str(request.url).startswith(address)

    batch_jobs.land = killing(batch_jobs.land, lambda *_: True)  # type: ignore[attr-defined]
    ledger.append = killing(ledger.append, lambda *_, **__: True)
    httpx.Client.send = killing(httpx.Client.send, asks_provider)  # type: ignore[method-assign]
    jobs.SETTLE = timedelta(0)  # the process that may have submitted is dead
    os.chdir(place)
    with Path("said").open("a") as said:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(said.fileno(), stream.fileno())
    words = ["--models", model, "--dataset", "commands.jsonl", "--lake", "lake", "--config", "evalake.toml", "--batch"]
    sys.argv = ["evalake", "run", "command_guard", *words, "--json"]
    main()
