"""Who started a run; tests/flows asks a server."""

from uuid import uuid4

from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from tasks.runtime.started_by import started_by


def test_where_the_server_is_away_nobody_knows() -> None:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}):
        assert started_by(str(uuid4()), 1) is None
