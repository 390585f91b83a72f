"""The client as a whole: limits are kept, identical calls are one, threads share it, and nothing hangs."""

import asyncio
import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from evalake.core.errors import ProviderError
from evalake.models.attempts import Outcome
from evalake.models.client import Client
from evalake.models.request import Reply, Request
from tests.integration.models.support import answer, answers, configuration, kinds, request
from tests.servers.model_server import ModelServer


def test_identical_calls_on_their_way_are_one(model_server: ModelServer) -> None:
    model_server.rule(latency=0.05)
    with Client(configuration(model_server)) as client:
        *same, other = client.run([client.call(request("same"), number) for number in (0, 0, 0, 1)])
    assert len(model_server.seen) == 2
    assert len({id(outcome) for outcome in same}) == 1
    assert other is not same[0]


def test_an_identical_call_outlives_the_one_that_started_it(model_server: ModelServer) -> None:
    model_server.rule(latency=0.1)

    async def first_gives_up(client: Client) -> Outcome:
        first = asyncio.ensure_future(client.call(request("same")))
        second = asyncio.ensure_future(client.call(request("same")))
        while not model_server.seen:
            await asyncio.sleep(0)
        first.cancel()
        return await second

    with Client(configuration(model_server)) as client:
        (outcome,) = client.run([first_gives_up(client)])
    assert isinstance(outcome, Reply)
    assert len(model_server.seen) == 1


def test_threads_share_one_client(model_server: ModelServer) -> None:
    model_server.rule(latency=0.005)
    with Client(configuration(model_server, concurrency=8)) as client, ThreadPoolExecutor(6) as threads:
        batches = [[request(f"{batch}/{number}") for number in range(20)] for batch in range(6)]
        outcomes = list(threads.map(lambda batch: answers(client, batch), batches))
    assert [kinds(outcome) for outcome in outcomes] == [{"reply": 20}] * 6
    assert len(model_server.seen) == 120
    assert model_server.max_in_flight <= 8


def test_conversations_walk_side_by_side(model_server: ModelServer) -> None:
    model_server.rule(reply=lambda messages: f"turn {len(messages)}", latency=0.02)

    async def walk(client: Client, name: str) -> list[str | None]:
        messages, texts = [{"role": "user", "content": name}], []
        for _ in range(3):
            outcome = await client.call(Request("hosted_vllm/m", tuple(messages), {}))
            assert isinstance(outcome, Reply)
            texts.append(outcome.text)
            messages += [{"role": "assistant", "content": outcome.text or ""}, {"role": "user", "content": "go on"}]
        return texts

    with Client(configuration(model_server, concurrency=10)) as client:
        talks = client.run(walk(client, f"talk {number}") for number in range(10))
    assert talks == [["turn 1", "turn 3", "turn 5"]] * 10
    assert model_server.max_in_flight > 1


def test_it_can_be_awaited_from_another_event_loop(model_server: ModelServer) -> None:
    with Client(configuration(model_server)) as client:
        outcome = asyncio.run(client.call(request("from elsewhere")))
    assert isinstance(outcome, Reply)


async def then(client: Client, text: str, act: Callable[[], object]) -> None:
    """Ask, and do something when the reply has come."""
    await client.call(request(text))
    act()


def test_what_a_conversation_raises_comes_back_and_stops_the_rest(model_server: ModelServer) -> None:
    model_server.rule(contains="slow", faults=[{"kind": "hang", "times": 0}])
    with Client(configuration(model_server)) as client:
        with pytest.raises(ZeroDivisionError):
            client.run([then(client, text, lambda: 1 / 0) for text in ("quick", "slow")])
        assert isinstance(answer(client, request("still alive")), Reply)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_cancels_the_calls_of_its_thread(model_server: ModelServer) -> None:
    model_server.rule(contains="slow", faults=[{"kind": "hang", "times": 0}])
    interrupt = partial(os.kill, os.getpid(), signal.SIGINT)
    with Client(configuration(model_server)) as client:
        with pytest.raises(KeyboardInterrupt):
            client.run([then(client, text, interrupt) for text in ("quick", *(f"slow {n}" for n in range(5)))])
        assert isinstance(answer(client, request("still alive")), Reply)


def test_closing_ends_what_is_on_its_way(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "hang", "times": 0}])
    client = Client(configuration(model_server))
    ended: list[str] = []

    def wait() -> None:
        with pytest.raises(ProviderError) as refusal:
            answer(client, request("hang"))
        ended.append(str(refusal.value))

    caller = threading.Thread(target=wait)
    caller.start()
    while not model_server.seen:
        pass
    client.close()
    caller.join()
    assert ended == ["the client was closed during its calls"]
    with pytest.raises(ProviderError, match="closed"):
        answer(client, request("too late"))
    client.close()


@pytest.mark.usefixtures("interruptible")
def test_interrupts_at_any_moment_leave_nothing_behind(model_server: ModelServer) -> None:
    with Client(configuration(model_server, concurrency=32)) as client:
        for after in range(1, 30):
            told = itertools.count(1)

            def interrupt(after: int = after, told: Iterator[int] = told) -> None:
                if next(told) == after:
                    os.kill(os.getpid(), signal.SIGINT)

            with pytest.raises(KeyboardInterrupt):
                client.run([then(client, f"{after}/{number}", interrupt) for number in range(60)])
        assert isinstance(answer(client, request("still alive")), Reply)
    assert model_server.in_flight == 0


def test_a_request_cannot_take_over_what_the_client_decides(model_server: ModelServer) -> None:
    with Client(configuration(model_server)) as client, pytest.raises(ProviderError, match="api_base"):
        answer(client, request("x", api_base="http://elsewhere.invalid"))
    assert not model_server.seen
