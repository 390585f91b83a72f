"""The runner: serves the scoring flow where it has no workers of its own. `… -m service.scoring.runner LIMIT LAKE`."""

import asyncio
import signal
import sys

POLL_SECONDS = 1.0


async def serve(limit: int, lake: str) -> None:
    """Run a lake's scorings as they are submitted, `limit` at a time, each in a process of its own, until ended."""
    from prefect.runner import Runner
    from prefect.types.entrypoint import EntrypointType

    from flows.score_session import queue_of, score_session

    stopping: list[asyncio.Task[None]] = []
    runner = Runner(name="evalake-serve", query_seconds=POLL_SECONDS, limit=limit, pause_on_shutdown=False)
    await runner.aadd_flow(
        score_session,
        name=queue_of(lake),
        description=f"Scores sessions as `evalake serve` asks for them, for the lake {lake}.",
        tags=["evalake", "session_review"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    running = asyncio.create_task(runner.start())
    while not runner.started and not running.done():
        await asyncio.sleep(0.05)
    # In place of the runner's own handler, which does not wait for what it stops
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: stopping.append(loop.create_task(runner.astop())))
    await running
    await asyncio.gather(*stopping)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
