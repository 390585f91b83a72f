"""The application of `evalake serve`: its routes, its pages, and the queue and the watch that run beside them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from evalake.core.errors import EvalakeError
from evalake.server.pages import add_pages
from evalake.server.scoring import events
from evalake.server.scoring import routes as scoring_routes
from evalake.server.scoring.scorings import ScoringSettings
from evalake.server.scoring.state import AppState
from evalake.server.viewer import routes as viewer_routes
from evalake.server.viewer.access import new_application


def create_app(settings: ScoringSettings, bound: str = "127.0.0.1") -> FastAPI:
    """Build the service as an ASGI application. Prefect must be configured (PREFECT_API_URL) when it starts.

    Args:
        settings: What it is started with.
        bound: The address that it listens on, by which it may be addressed.
    """
    app_state = AppState.open(settings)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        seconds = settings.configuration.service.follow_seconds
        following = events.follow(app_state.sessions, app_state.watch.hub, app_state.completions, seconds)
        with suppress(EvalakeError):  # else the watch logs it
            await app_state.watch.tell()  # so that who subscribes first is told the current state, too
        with app_state.queue.running():
            tasks = [asyncio.create_task(each) for each in (app_state.watch.run(), following)]
            yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    description = "Scores of agents' alert investigations, asked for and read."
    app = new_application(settings, bound, title="evalake scoring API", description=description, lifespan=alive)
    app.state.app_state = app_state
    for router in (scoring_routes.router, scoring_routes.reading, viewer_routes.router, events.router):
        app.include_router(router)
    add_pages(app)
    return app
