"""Roadmap: what many results say is wanting, grouped by meaning, counted and ranked; a table in the UI shows it."""

from typing import Any

import polars as pl
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE

from evalake.admin.roadmap import make_roadmap, measure_grouping, ranked, roadmap_of, roadmap_suites
from evalake.tasks.runtime.form import ConfigurationFile, Judge, LakeUri, SuiteName, Suites, asking, opened

SHOWN = ("kind", "rank", "theme", "samples", "points_lost", "mean_score")

make_task = task(name="make roadmap", cache_policy=NO_CACHE, persist_result=False)(make_roadmap)


@flow(name="roadmap", persist_result=False)
def roadmap(
    suites: Suites = (),
    judge: Judge = None,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> dict[str, str]:
    """Group what the results of suites lack, and rank it by what it costs; returns suite to roadmap id.

    What the ledger holds is not asked again, and the same results give the roadmap that is there. Suites whose results
    name nothing yet are left out. Raises GroupingError where a judge gave no grouping.

    Args:
        suites: The suites; none means all that a roadmap can be made of.
        judge: Who groups by meaning; none means rules, by the words in common.
    """
    made = {}
    for suite in suites or roadmap_suites():
        with asking(suite, [judge] if judge is not None else [], *opened(lake, configuration_file)) as context:
            rows = make_task.with_options(task_run_name=f"roadmap of {suite}")(context, judge)
        if not rows.is_empty():
            made[suite] = str(rows["roadmap_id"][0])
            _show(suite, ranked(rows))
    return made


@flow(name="measure-roadmap", persist_result=False)
def measure_roadmap(
    suite: SuiteName,
    judge: Judge = None,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> list[dict[str, Any]]:
    """Say how well a labelled set is grouped; only what the ledger does not hold is asked.

    Args:
        suite: The suite whose labelled set is grouped.
        judge: Who groups by meaning; none means rules, by the words in common.
    """
    with asking(suite, [judge] if judge is not None else [], *opened(lake, configuration_file)) as context:
        return measure_grouping(context, judge)


def _show(suite: str, themes: pl.DataFrame) -> None:
    """Put the themes into the UI as a table."""
    shown: list[dict[str, Any]] = themes.select(SHOWN).to_dicts()
    create_table_artifact(shown, key=f"roadmap-{suite.replace('_', '-')}", description=roadmap_of(suite).title)
