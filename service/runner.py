"""The runner: serves the scoring flow where it has no workers of its own. `python -m service.runner LIMIT`."""

import asyncio
import sys

POLL_SECONDS = 1.0


async def serve(limit: int) -> None:
    """Run scorings as they are submitted, `limit` at a time, each in a process of its own, until ended."""
    from prefect.types.entrypoint import EntrypointType
    from prefect.runner import Runner

    from flows.score_session import DEPLOYMENT, score_session

    runner = Runner(name="evalake-serve", query_seconds=POLL_SECONDS, limit=limit, pause_on_shutdown=False)
    await runner.aadd_flow(
        score_session,
        name=DEPLOYMENT,
        description="Scores sessions as `evalake serve` asks for them.",
        tags=["evalake", "session_review"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    await runner.start()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
