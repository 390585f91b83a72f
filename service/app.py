"""The application of `evalake serve`: its routes, its pages, and the watch that runs beside them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service.access_control import AccessControl
from service.error_answers import add_error_answers
from service.hosts import Hosts
from service.pages import VIEWER, add_pages
from service.scoring import reading_routes, socket
from service.scoring import routes as scoring_routes
from service.scoring.addresses import SESSION
from service.scoring.app_state import AppState
from service.scoring.follower import follow
from service.scoring.settings import ScoringSettings
from service.viewer import routes as viewer_routes
from service.viewer.access import add_state
from tasks.runtime.context import CODE_VERSION


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

    app = FastAPI(
        title="evalake scoring API",
        version=CODE_VERSION,
        description="Scores of agents' alert investigations, asked for and read.",
        lifespan=alive,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # they load scripts of other hosts
        redoc_url=None,
    )
    app.state.app_state = app_state
    app.add_middleware(
        AccessControl, settings=settings, hosts=Hosts(bound, settings.configuration.service.allowed_hosts)
    )
    add_state(app, settings.lake)
    add_error_answers(app)
    for routes in (scoring_routes, reading_routes, viewer_routes, socket):
        app.include_router(routes.router)
    add_pages(app, (SESSION, "/trends", *VIEWER))
    return app
