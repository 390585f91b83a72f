"""A bare LiteLLM loop in a process of its own: what somebody would write who only wants the replies.

It imports nothing of evalake, so that the process as a whole is one that somebody else would have started.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WARM_UP = 64


def run(prompts: Path, model: str, api_base: str, concurrency: int) -> float:
    """Measure the seconds that it takes to ask the model all prompts, without the start of the process."""
    from benchmarks.place import child

    return float(child("bare_loop", [str(prompts), model, api_base, str(concurrency)], ENVIRONMENT))


ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


async def _ask(prompts: Sequence[Any], model: str, api_base: str, concurrency: int) -> float:
    import litellm

    slots = asyncio.Semaphore(concurrency)

    async def ask(messages: Any) -> None:
        async with slots:
            await litellm.acompletion(
                model=model, messages=messages, api_base=api_base, api_key="none", num_retries=0, max_retries=0
            )

    await asyncio.gather(*map(ask, prompts[:WARM_UP]))
    started = time.perf_counter()
    await asyncio.gather(*map(ask, prompts))
    return time.perf_counter() - started


def main(prompts: Path, model: str, api_base: str, concurrency: int) -> None:
    """Ask everything once, after a warm-up, and print the seconds."""
    asked = [json.loads(line) for line in prompts.read_text().splitlines()]
    print(json.dumps(asyncio.run(_ask(asked, model, api_base, concurrency))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
