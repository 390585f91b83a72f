"""The application of `evalake serve`: its routes, its pages, and the watch that runs beside them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service.pages import add_pages
from service.scoring import reading_routes, socket
from service.scoring import routes as scoring_routes
from service.scoring.app_state import AppState
from service.scoring.follower import follow
from service.scoring.settings import ScoringSettings
from service.viewer import routes as viewer_routes
from service.viewer.access import new_application


def create_app(settings: ScoringSettings, bound: str = "127.0.0.1") -> FastAPI:
    """Build the service as an ASGI application. Prefect must be configured (PREFECT_API_URL) when it starts.

    Args:
        settings: What it is started with.
        bound: The address that it listens on, by which it may be addressed.
    """
    app_state = AppState.open(settings)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        following = follow(app_state.sessions, app_state.monitor.hub, settings.configuration.service.follow_seconds)
        tasks = [asyncio.create_task(each) for each in (app_state.monitor.run(), following)]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    description = "Scores of agents' alert investigations, asked for and read."
    app = new_application(settings, bound, title="evalake scoring API", description=description, lifespan=alive)
    app.state.app_state = app_state
    for routes in (scoring_routes, reading_routes, viewer_routes, socket):
        app.include_router(routes.router)
    add_pages(app)
    return app
