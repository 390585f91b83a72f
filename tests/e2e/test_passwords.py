"""A password in the URL of a dataset or a lake is refused before anything keeps it, whichever way it is given."""

import re
from pathlib import Path

import httpx
import pytest

from tests.cli.command import evalake
from tests.e2e.processes import PrefectStack, wait_until

pytestmark = pytest.mark.e2e

PASSWORD = "heliotrope-83c1"
DATASET = f"postgresql://reader:{PASSWORD}@127.0.0.1:9/tarsy"
LAKE = f"s3://reader:{PASSWORD}@bucket/lake"
HARMLESS = "postgresql://harmless-reader@127.0.0.1:9/tarsy"  # what must be found, for the search to mean anything
LATER = "2099-01-01T00:00:00Z"  # nobody is to run it


@pytest.fixture(scope="module")
def stack(stack_in_files: PrefectStack) -> PrefectStack:
    """What the server keeps is searched."""
    return stack_in_files


def test_a_password_in_a_url_stays_nowhere(stack: PrefectStack, tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (tmp_path / "evalake.toml").write_text(f'[models."openai/m"]\napi_base = "https://u:{PASSWORD}@127.0.0.1:9/v1"\n')
    suite, at = ("run", "session_review"), ("--lake", tmp_path / "lake")
    for command in (
        (*suite, "--dataset", DATASET, *at),
        (*suite, "--lake", LAKE),
        (*suite, "--config", tmp_path / "evalake.toml", *at),
        ("import", DATASET, "--suite", "session_review", *at),
        ("serve", "--sessions", DATASET, "--port", "0", *at),
        ("check", "--lake", LAKE),
    ):
        refused = evalake(*command, folder=elsewhere, **stack.environment)
        assert refused.returncode in (1, 2), refused.stderr
        assert "password" in refused.stderr
        assert PASSWORD not in refused.stdout + refused.stderr
    (tmp_path / "evalake.toml").unlink()

    deployments = stack.post("/deployments/filter", {})
    datasets = next(each for each in deployments if each["name"].startswith("session-review"))
    assert _asked(stack, datasets["id"], {"suite": "session_review", "datasets": [HARMLESS]}) == 201
    for value in ([DATASET], DATASET, ["starter", DATASET], f"starter\n{DATASET}"):
        assert _asked(stack, datasets["id"], {"suite": "session_review", "datasets": value}) in (409, 422)
    with_lake = [each for each in deployments if "lake" in each["parameter_openapi_schema"]["properties"]]
    assert len(with_lake) > 8
    for deployment in with_lake:
        required = dict.fromkeys(deployment["parameter_openapi_schema"].get("required", []), "x")
        parameters = {**required, **deployment["parameters"], "lake": LAKE}
        assert _asked(stack, deployment["id"], parameters) in (409, 422), deployment["name"]

    kept = [path for folder in (stack.folder, tmp_path) for path in folder.rglob("*") if path.is_file()]
    assert _holding(HARMLESS, kept)
    assert not _holding(PASSWORD, kept)


def _asked(stack: PrefectStack, deployment: str, parameters: dict[str, object]) -> int:
    """How the server answers whoever asks for a run, as its form and any client do."""
    body = {"parameters": parameters, "state": {"type": "SCHEDULED", "state_details": {"scheduled_time": LATER}}}

    def answer() -> int | None:
        response = httpx.post(f"{stack.url}/deployments/{deployment}/create_flow_run", json=body, timeout=60)
        return None if response.status_code == httpx.codes.SERVICE_UNAVAILABLE else response.status_code

    return int(wait_until(answer, "an answer other than that the database is busy"))


def _holding(text: str, files: list[Path]) -> list[str]:
    pattern = re.compile(re.escape(text.encode()))
    return [str(path) for path in files if pattern.search(path.read_bytes())]
