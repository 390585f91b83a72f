"""Artifacts as the Prefect UI shows them: the newest of a key, with its description and rows."""

import json
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey


def newest_artifact(key: str) -> tuple[str, list[dict[str, Any]]]:
    """What the newest artifact of a key says of itself, and its rows."""
    with get_client(sync_client=True) as client:
        of_key = ArtifactFilter(key=ArtifactFilterKey(any_=[key]))
        newest = max(client.read_artifacts(artifact_filter=of_key), key=lambda found: str(found.created))
    return newest.description or "", json.loads(str(newest.data))
