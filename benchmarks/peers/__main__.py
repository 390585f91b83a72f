"""Peers: whole commands of evalake, Inspect, promptfoo and a bare LiteLLM loop, timed from their start to their exit.

All ask the same model server, which answers at once and counts: a contender that does not ask what the others ask, or
asks what it should have kept, is an error. They take turns; what is reported are medians of the rounds.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median

import httpx

from benchmarks.material import write_commands, write_prompts
from benchmarks.measure import Measure, report, say
from benchmarks.peers.contenders import MODEL, Asked, Bare, Evalake, Inspect, Promptfoo
from benchmarks.peers.install import PACKAGES, NotInstalledError
from benchmarks.place import folder, model_server, seconds_of_calls

NEW, KNOWN = 5_000, 1_000
ROUNDS = 3
FASTER = {"promptfoo": 3.0, "Inspect": 8.0}  # how many times as fast a whole command of ours is to be

Contender = Bare | Inspect | Promptfoo | Evalake
Seconds = Mapping[str, float]  # by contender; medians
UP, NOT_UP = Evalake(server_up=True), Evalake(server_up=False)


def main() -> None:
    """Install the peers, time all contenders in turns, and report the medians."""
    peers, missing = _installed()
    with folder() as place, model_server() as api_base:
        new, calls = _new([*peers, Bare(), UP, NOT_UP], place, api_base, missing)
        known = _known([*(peer for peer in peers if peer.name == "promptfoo"), UP, NOT_UP], place, api_base, missing)
    report([*_measures_of_new(new, calls, missing), *_measures_of_known(known, missing)])


def _installed() -> tuple[list[Contender], dict[str, str]]:
    """Install the peers; returns those that can be installed here, and for the others why not."""
    peers: list[Contender] = []
    missing = {}
    for kind in (Promptfoo, Inspect):
        try:
            peers.append(kind())
        except NotInstalledError as error:
            missing[kind.name] = f"cannot be installed: {error}"
            say(f"{kind.name} {missing[kind.name]}")
    return peers, missing


def _new(
    contenders: Sequence[Contender], place: Path, api_base: str, missing: dict[str, str]
) -> tuple[Seconds, Seconds]:
    """Time whole commands in which every prompt is new; also from the first request to the last answer of each."""
    whole, calls = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for number, contender in product(range(ROUNDS), contenders):
        here = place / f"new-{number}-{contender.name}"
        seconds = _seconds(contender, _asked(here, NEW, api_base), missing, known=False)
        if seconds is not None:
            whole[contender.name].append(seconds)
            calls[contender.name].append(seconds_of_calls(api_base, NEW))
            say(f"{contender.name}: {NEW:,} new calls in {seconds:.1f} s, {calls[contender.name][-1]:.1f} s calling")
    return _medians(whole), _medians(calls)


def _known(contenders: Sequence[Contender], place: Path, api_base: str, missing: dict[str, str]) -> Seconds:
    """Time whole commands in which no prompt is new, after one of each that asked every prompt."""
    whole = defaultdict[str, list[float]](list)
    for number, contender in product(range(ROUNDS + 1), contenders):
        here = place / f"known-{contender.name}"
        seconds = _seconds(contender, _asked(here, KNOWN, api_base), missing, known=number > 0)
        if number and seconds is not None:
            whole[contender.name].append(seconds)
            say(f"{contender.name}: {KNOWN:,} known samples in {seconds:.1f} s")
    return _medians(whole)


def _asked(here: Path, count: int, api_base: str) -> Asked:
    """Make a folder with the dataset and prompts of one command, and reset the server's list of requests."""
    httpx.post(api_base.removesuffix("/v1") + "/_reset").raise_for_status()
    here.mkdir(exist_ok=True)
    dataset = write_commands(here / "commands.jsonl", count)
    return Asked(dataset, write_prompts(here / "prompts.jsonl", dataset, MODEL), api_base)


def _seconds(contender: Contender, asked: Asked, missing: dict[str, str], *, known: bool) -> float | None:
    """Run a whole command; None where a peer is missing or fails. Ours, and the bare loop, must not fail."""
    if contender.name in missing:
        return None
    try:
        seconds = contender.run(asked.dataset.parent, asked).seconds
        _require_asked(asked, known=known)
    except (RuntimeError, AssertionError) as error:
        if contender.name not in FASTER:
            raise
        missing[contender.name] = f"does not run: {str(error).strip().splitlines()[-1]}"
        say(f"{contender.name} {missing[contender.name]}: {error}")
        return None
    return seconds


def _require_asked(asked: Asked, *, known: bool) -> None:
    """Raise AssertionError where the server was not asked every prompt, or, where all were known, was asked any.

    The last messages are compared: promptfoo strips blanks off the end of the others.
    """
    seen = httpx.get(asked.api_base.removesuffix("/v1") + "/_requests", timeout=60).json()
    prompts = [] if known else [json.loads(line) for line in asked.prompts.read_text().splitlines()]
    found, expected = {each["content"] for each in seen}, {each[-1]["content"] for each in prompts}
    assert found == expected, f"it asked {len(found):,} prompts in place of {len(expected):,}, or others"


def _medians(seconds: Mapping[str, Sequence[float]]) -> Seconds:
    return {name: median(taken) for name, taken in seconds.items()}


def _measures_of_new(whole: Seconds, calls: Seconds, missing: Mapping[str, str]) -> list[Measure]:
    """Compute how many times as fast as each peer ours are, with the calls a second that the server saw."""

    def told(name: str, shown: str) -> str:
        return f"{shown} {whole[name]:.1f} s ({NEW / calls[name]:,.0f} calls/s inside)"

    measures = []
    for (peer, bound), ours in product(FASTER.items(), (UP, NOT_UP)):
        ratio = None if peer in missing else whole[peer] / whole[ours.name]
        behind = missing.get(peer) or f"{told(peer, PACKAGES[peer.lower()][0])}; {told(ours.name, 'ours')}"
        behind += f"; {told(Bare.name, Bare.name)}"
        measures.append(Measure(f"{NEW:,} new calls over {peer}, {_state(ours)}", ratio, bound, True, "x", behind))
    return measures


def _measures_of_known(whole: Seconds, missing: Mapping[str, str]) -> list[Measure]:
    """Measure ours in seconds with the server up, and over promptfoo's time without."""
    theirs, ours = whole.get("promptfoo"), whole[NOT_UP.name]
    behind = missing.get("promptfoo") or f"promptfoo {theirs:.2f} s, its cache on; ours {ours:.2f} s"
    ratio = None if theirs is None else ours / theirs
    return [
        Measure(f"{KNOWN:,} known samples, server up", whole[UP.name], 4.0, False, "s", f"median of {ROUNDS}"),
        Measure(f"{KNOWN:,} known over promptfoo, {_state(NOT_UP)}", ratio, 1.0, False, "x", behind),
    ]


def _state(ours: Evalake) -> str:
    return ours.name.removeprefix("evalake, ")


if __name__ == "__main__":
    main()
