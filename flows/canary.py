"""The flow canary: judges frozen items again, to find whether judges still answer as before, with a table in the UI."""

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from evalake.contracts.contract import Row
from evalake.core.errors import EvalakeError
from evalake.suites.registry import canary_suites
from evalake.suites.registry import suite as find_suite
from evalake.tasks.canary import Canary, CanaryError, watch
from evalake.tasks.runtime.form import ConfigurationFile, Day, Judges, LakeUri, Suites, context_of, flow_inputs
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
    """Ask judges about frozen items again, and begin a new version of judges whose answers moved beyond their noise.

    A second run for the same day uses the answers of the first. Returns the rows of judge_canaries. Raises CanaryError,
    after asking the other judges, where a judge does not answer.

    Args:
        suites: The suites whose frozen items are judged; default: all with frozen items.
        judges: The judges; default: each suite's baselines.
        day: The day of the canary; default: the day for which the run was scheduled.
    """
    where, configuration = flow_inputs(lake, configuration_file)
    today = (day or flow_run.scheduled_start_time.date()).isoformat()
    judged = []
    judging = {name: judges or find_suite(name).conversation.default_judges for name in suites or canary_suites()}
    failures = [f"{name}: it has no judge of its own, so name one" for name, those in judging.items() if not those]
    asked = [
        Canary(context_of(name, [judge], where, configuration), judge, today, str(flow_run.id))
        for name, those in judging.items()
        for judge in those
    ]
    for each in asked:
        try:
            judged.append(watch_task.with_options(task_run_name=f"{each.context.suite_name} {each.judge}")(each))
        except EvalakeError as error:
            failures.append(f"{each.context.suite_name}: {error}")
        finally:
            release_client(each.context)
    create_table_artifact([{name: row[name] for name in SHOWN} for row in judged], key=ARTIFACT, description=today)
    if failures:
        raise CanaryError(f"{len(failures)} judges did not answer: {'; '.join(failures)}")
    return judged
