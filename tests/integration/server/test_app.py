"""The application answers without a server around it, and describes what it answers."""

import asyncio
from pathlib import Path

import httpx

from evalake.server.scoring.scorings import ScoringSettings
from evalake.server.server import create_app
from evalake.storage.lake import Lake


def test_it_describes_itself_and_knows_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "evalake.toml"
    file.touch()
    app = create_app(ScoringSettings(lake=Lake(str(tmp_path / "lake")), configuration_file=str(file)))

    async def ask() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            return [await client.get(f"/api/v1/{path}") for path in ("openapi.json", "runs", "nothing")]

    described, runs, nothing = asyncio.run(ask())
    assert {"/api/v1/runs", "/api/v1/scoring/batch"} <= described.json()["paths"].keys()
    assert (runs.status_code, runs.json()["runs"]) == (200, [])
    assert (nothing.status_code, list(nothing.json())) == (404, ["detail"])
