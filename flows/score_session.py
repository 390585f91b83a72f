"""Score one session: the judge's conversation about it, from a pending row to a completed or failed one."""

import os
from pathlib import Path

from prefect import flow

from contracts.configuration import read_configuration
from flows.evaluate import DEFAULT_LAKE
from storage.lake import Lake
from tasks.heartbeat import beating
from tasks.logs import redact_logs
from tasks.resources import release_client
from tasks.scoring import Scoring

DEPLOYMENT = "on-demand"


@flow(name="score-session", persist_result=False)
def score_session(
    score_id: str,
    lake: str | None = None,
    configuration_file: str | None = None,
) -> int | None:
    """Score the session of a pending scoring; returns the total.

    A run of a scoring that is completed does nothing. Whatever goes wrong once the scoring is taken on ends it as
    failed, with a reason; one that is never taken on is found to be lost, by the service.

    Args:
        score_id: The scoring, which is pending in session_scores.
        lake: The lake; none means EVALAKE_LAKE or ./lake.
        configuration_file: In place of ./evalake.toml.
    """
    redact_logs()
    where = Lake(lake or os.environ.get("EVALAKE_LAKE") or DEFAULT_LAKE)
    configuration = read_configuration(Path(configuration_file) if configuration_file else None)
    scoring = Scoring.take(where, score_id, configuration)
    if scoring is None:
        return None
    title = f"{scoring.row['session_id'][:80]}: 10 methodology, 60 missing tools"
    try:
        progress = beating(f"scoring-{score_id[:16]}", title, lambda: scoring.progress)
        with scoring.context.scope("score session"), progress:
            scoring.walk()
            total: int | None = scoring.end()["total_score"]
    except BaseException as error:
        scoring.fail("error", f"{type(error).__name__}: {error}")  # without effect where it is over
        raise
    finally:
        release_client(scoring.context)
    return total
