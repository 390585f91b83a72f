"""The flow roadmap: groups the gaps that results name by meaning, and ranks them, with a table in the UI."""

from typing import Any

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE

from evalake.admin.roadmap import make_roadmap, measure_grouping, ranked, roadmap_of, roadmap_suites
from evalake.tasks.runtime.form import ConfigurationFile, Judge, LakeUri, SuiteName, Suites, flow_inputs, judge_context

SHOWN = ("kind", "rank", "theme", "samples", "points_lost", "mean_score")

make_task = task(name="make roadmap", cache_policy=NO_CACHE, persist_result=False)(make_roadmap)


@flow(name="roadmap", persist_result=False)
def roadmap(
    suites: Suites = (),
    judge: Judge = None,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> dict[str, str]:
    """Group the gaps that the results of suites name, and rank them by lost points; returns the roadmap id by suite.

    The ledger answers known calls, and unchanged results give the same roadmap. Suites without named gaps are left out.
    Raises GroupingError where a judge gives no grouping.

    Args:
        suites: The suites; default: all with roadmaps.
        judge: The model that groups by meaning; default: rules, by common words.
    """
    made = {}
    for suite in suites or roadmap_suites():
        with judge_context(
            suite, [judge] if judge is not None else [], *flow_inputs(lake, configuration_file)
        ) as context:
            rows = make_task.with_options(task_run_name=f"roadmap of {suite}")(context, judge)
        if not rows.is_empty():
            made[suite] = str(rows["roadmap_id"][0])
            shown: list[dict[str, Any]] = ranked(rows).select(SHOWN).to_dicts()
            title = roadmap_of(suite).title
            create_table_artifact(shown, key=f"roadmap-{suite.replace('_', '-')}", description=title)
    return made


@flow(name="measure-roadmap", persist_result=False)
def measure_roadmap(
    suite: SuiteName,
    judge: Judge = None,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> list[dict[str, Any]]:
    """Measure the grouping of a labelled set; the ledger answers known calls.

    Args:
        suite: The suite with the labelled set.
        judge: The model that groups by meaning; default: rules, by common words.
    """
    with judge_context(suite, [judge] if judge is not None else [], *flow_inputs(lake, configuration_file)) as context:
        return measure_grouping(context, judge)
