"""A bare LiteLLM loop in a process of its own: what somebody would write who only wants the replies."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.flow_run import CONCURRENCY, WARM_UP_SAMPLES
from benchmarks.place import child


def run(dataset: Path, model: str, api_base: str) -> float:
    """The seconds it takes to ask the model about the whole dataset."""
    return float(child("bare_loop", [str(dataset), model, api_base]))


async def _ask(prompts: Sequence[Any], model: str, api_base: str) -> float:
    import litellm

    slots = asyncio.Semaphore(CONCURRENCY)

    async def ask(messages: Any) -> None:
        async with slots:
            await litellm.acompletion(
                model=model, messages=messages, api_base=api_base, api_key="none", num_retries=0, max_retries=0
            )

    await asyncio.gather(*map(ask, prompts[:WARM_UP_SAMPLES]))
    started = time.perf_counter()
    await asyncio.gather(*map(ask, prompts))
    return time.perf_counter() - started


def main(dataset: Path, model: str, api_base: str) -> None:
    """Ask everything once, after a warm-up, and print the seconds."""
    from benchmarks.material import requests
    from cli.environment import prepare

    prepare()
    prompts = [[dict(message) for message in request.messages] for request in requests(dataset, model)]
    print(json.dumps(asyncio.run(_ask(prompts, model, api_base))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
