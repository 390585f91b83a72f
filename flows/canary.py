"""Canary: frozen items judged again, to see whether judges still answer as they did; a table in the UI says so."""

from collections.abc import Iterator, Sequence

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from evalake.contracts.contract import Row
from evalake.core.configuration import Configuration
from evalake.core.errors import EvalakeError
from evalake.storage.lake import Lake
from evalake.suites.registry import canary_suites
from evalake.suites.registry import suite as find_suite
from evalake.tasks.canary import Canary, CanaryError, watch
from evalake.tasks.runtime.form import ConfigurationFile, Day, Judges, LakeUri, Suites, context_of, opened
from evalake.tasks.runtime.resources import release_client

ARTIFACT = "judge-canary"
SHOWN = ("suite", "judge", "version", "moved", "items", "answers", "distance", "noise", "shift", "p_value")

watch_task = task(name="watch", cache_policy=NO_CACHE, persist_result=False)(watch)


@flow(name="canary", persist_result=False)
def canary(
    suites: Suites = (),
    judges: Judges = (),
    day: Day = None,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> list[Row]:
    """Ask judges about frozen items once more, and begin a new version of those whose answers moved beyond their noise.

    A day is asked once: another run for it finds its answers. Returns the rows of judge_canaries. Raises CanaryError,
    after all others were asked, where a judge gave no answer.

    Args:
        suites: The suites whose frozen items are judged; none means all that have some.
        judges: The judges; none means each suite's baselines.
        day: The day to be asked for; none means the one for which the run was scheduled.
    """
    where, configuration = opened(lake, configuration_file)
    today = (day or flow_run.scheduled_start_time.date()).isoformat()
    judged, failures = [], []
    for each in list(_canaries(where, configuration, suites or canary_suites(), judges, today)):
        try:
            judged.append(watch_task.with_options(task_run_name=f"{each.context.suite_name} {each.judge}")(each))
        except EvalakeError as error:
            failures.append(f"{each.context.suite_name}: {error}")
        finally:
            release_client(each.context)
    create_table_artifact([{name: row[name] for name in SHOWN} for row in judged], key=ARTIFACT, description=today)
    if failures:
        raise CanaryError(f"{len(failures)} judges could not be judged: {'; '.join(failures)}")
    return judged


def _canaries(
    lake: Lake, configuration: Configuration, suites: Sequence[str], judges: Sequence[str] | None, day: str
) -> Iterator[Canary]:
    for name in suites:
        for judge in judges or find_suite(name).conversation.default_judges:
            yield Canary(context_of(name, [judge], lake, configuration), judge, day, str(flow_run.id))
