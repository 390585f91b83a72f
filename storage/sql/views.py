"""The views of every lake, which answer frequent questions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalake.contracts.contract import Contract, scales
from evalake.contracts.engines.sql import literal
from evalake.contracts.tables import CALLS, METRIC_SNAPSHOTS, QUARANTINE, RUN_ITEMS, RUNS, SNAPSHOTS
from evalake.contracts.tables.metrics import JUDGE_VERSIONS
from evalake.contracts.tables.runs import ITEM_KEY


@dataclass(frozen=True)
class View:
    """A named query. `needs` are its tables; `columns` describes its columns in order."""

    name: str
    description: str
    sql: str
    needs: tuple[str, ...]
    columns: Mapping[str, str]


def views(contracts: Sequence[Contract]) -> tuple[View, ...]:
    """List the views with present tables, each after the views that it reads."""
    tables = {contract.table for contract in contracts}
    general = tuple(view for view in _GENERAL if tables.issuperset(view.needs))
    if tables.issuperset((RUN_ITEMS.table, SNAPSHOTS.table, RUNS.table)):
        general = (*_run_results(contracts), *general)
    answering = [contract for contract in contracts if contract.column.keys() >= _ANSWERED_BY]
    if not answering:
        return general
    needs = tuple(contract.table for contract in answering)
    return (*general, _answers(answering, needs), _disagreement(needs))


REPLIES = View(
    "replies",
    "The reply of each call: the first committed one of its highest revision, because a race leaves two.",
    # A join with the few repeated keys lets limits and conditions reach the files; a window would read all rows
    """
    select calls.* from calls
    left join (
        select prompt_hash, replicate, endpoint, max(reply_revision) as reply_revision,
            arg_min(ledger_version, (-reply_revision, ledger_version)) as ledger_version
        from calls group by prompt_hash, replicate, endpoint having count(*) > 1
    ) twice using (prompt_hash, replicate, endpoint)
    where twice.ledger_version is null
        or (calls.ledger_version = twice.ledger_version and calls.reply_revision = twice.reply_revision)
    """,
    (CALLS.table,),
    {column.name: column.description for column in CALLS.columns},
)

BOUNDS = ("bound_low", "bound_high")
_MEASURED = {column.name: column.description for column in METRIC_SNAPSHOTS.columns}


def _some(columns: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: columns[name] for name in names}


METRIC_HISTORY = View(
    "metric_history",
    "Every metric value of every snapshot, with the run it measures, and how far it moved since the value before it "
    "that means the same: same model and parameters of its requests, judge, its version and criteria, datasets and "
    "their versions, prompt types, repeats, definitions and scorer.",
    """
    with criteria as (
        select snapshot_id, judge, string_agg(distinct slice_value, '+' order by slice_value) as criteria
        from metric_snapshots where slice = 'criteria_hash' group by all
    ),
    judged as (
        select distinct m.suite, m.judge, r.run_id, coalesce(r.ended_at, r.started_at) as judged_at
        from metric_snapshots m join snapshots s using (snapshot_id) join runs r on r.run_id = s.run_id
        where m.judge is not null and r.origin = 'run'
    ),
    versions as (
        select j.suite, j.judge, j.run_id, 1 + count(distinct e.judge || ' ' || e.version) as judge_version
        from judged j left join judge_versions e
            on e.suite = j.suite and e.version > 1 and e.since <= j.judged_at
            and list_contains(string_split(regexp_replace(j.judge, '^panel:(dawid_skene:)?', ''), '+'), e.judge)
        group by all
    ),
    measured as (
        select
            m.suite, m.model, m.judge, coalesce(r.origin, 'unknown') as origin,
            coalesce(
                array_to_string(list_sort(json_keys(r.dataset_versions)), '+')
                    || coalesce(
                        ' (first ' || (r.parameters ->> '$.first') || ')',
                        ' (' || (r.parameters ->> '$.pooled') || ' pooled)',
                        case when (r.parameters ->> '$.draw') is not null
                            then ' (' || (r.parameters ->> '$.limit') || ' drawn)'
                            else ' (first ' || (r.parameters ->> '$.limit') || ')' end,
                        ' (chosen '
                            || left(sha256(coalesce(r.parameters ->> '$.samples', r.parameters ->> '$.only_failed')), 8)
                            || ')',
                        ''
                    ),
                'unknown'
            ) as datasets,
            m.slice, m.slice_value, m.metric, m.tier, m.value, m.n, m.se, m.ci_low, m.ci_high, m.reliable,
            m.bound_low, m.bound_high,
            s.run_id, m.snapshot_id, coalesce(r.started_at, s.created_at) as run_started_at,
            s.created_at as measured_at, s.definition_hash, s.scorer_version, e.judge_version, r.dataset_versions,
            array_to_string(
                list_sort(cast(coalesce(r.parameters -> '$.prompts', r.parameters -> '$.prompt_types') as varchar[])),
                '+'
            ) as prompt_types,
            cast(r.parameters -> '$.replicates' as bigint) as replicates,
            concat_ws(' ',
                cast(r.parameters -> '$.request_parameters' as map(varchar, varchar))[m.model],
                cast(r.parameters -> '$.request_parameters' as map(varchar, varchar))[m.judge]
            ) as request_parameters,
            c.criteria
        from metric_snapshots m join snapshots s using (snapshot_id) left join runs r on r.run_id = s.run_id
        left join versions e on e.suite = m.suite and e.judge = m.judge and e.run_id = s.run_id
        left join criteria c on c.snapshot_id = m.snapshot_id and c.judge is not distinct from m.judge
    )
    select *, lag(value) over before as previous_value, value - lag(value) over before as change
    from measured
    window before as (
        partition by
            suite, model, judge, judge_version, criteria, origin, datasets, dataset_versions, prompt_types, replicates,
            request_parameters, slice, slice_value, metric, definition_hash, scorer_version
        order by run_started_at, measured_at, snapshot_id
    )
    """,
    (METRIC_SNAPSHOTS.table, SNAPSHOTS.table, RUNS.table, JUDGE_VERSIONS.table),
    {
        **_some(_MEASURED, "suite", "model", "judge"),
        "origin": "run: models were called; import: recorded results were read; unknown: the run is not in the table.",
        "datasets": "The names of the run's datasets, sorted, joined by +; with `(5 drawn)`, `(first 5)` or "
        "`(chosen 1f2e3d4c)`, a hash of the choice, behind them, where the run did not take all samples of each.",
        **_some(_MEASURED, "slice", "slice_value", "metric", "tier", "value", "n", "se"),
        **_some(_MEASURED, "ci_low", "ci_high", "reliable", *BOUNDS),
        "run_id": "The run that was measured.",
        "snapshot_id": "The snapshot.",
        "run_started_at": "When the run began, with its first attempt: a retry makes it no newer.",
        "measured_at": "When the snapshot was made.",
        "definition_hash": "SHA-256 over the metric definitions: values of different ones do not compare.",
        "scorer_version": "The version of the rules that turned replies into rows.",
        "judge_version": "How often the judge (for a panel, its judges) had moved when the run ended, and 1 more: "
        "values of different versions do not compare. Null without a judge, and for imports.",
        "dataset_versions": "The versions of the datasets, by name, as JSON; null where the run is not in the table.",
        "prompt_types": "The prompts that were used, sorted, joined by +, one's own with a hash of their texts; null "
        "for imports.",
        "replicates": "How often each item was asked; null for imports.",
        "request_parameters": "What configuration and suite add to the requests of the model, then of the judge, as "
        "JSON; empty where they add nothing, and for imports.",
        "criteria": "The criteria that the judge judged by, where the suite tells them apart; else null.",
        "previous_value": "The value before it that means the same; null for the first.",
        "change": "The value less the previous one; null for the first.",
    },
)

_CONDITIONS = ("dataset_versions", "prompt_types", "replicates", "judge_version", "criteria", "request_parameters")

LATEST_METRICS = View(
    "latest_metrics",
    "The last snapshot of the newest run of every suite, model, judge, origin, set of datasets, prompt types, number "
    "of repeats and parameters of requests: a quick run over a few samples does not hide the full one, and all values "
    "of a model so asked come from one snapshot.",
    """
    select h.* from metric_history h left join runs r on r.run_id = h.run_id
    qualify rank() over (
        partition by
            h.suite, h.model, h.judge, h.origin, h.datasets, h.prompt_types, h.replicates, h.request_parameters
        order by
            h.run_started_at desc, coalesce(r.snapshot_id = h.snapshot_id, false) desc, h.measured_at desc,
            h.snapshot_id desc
    ) = 1
    """,
    METRIC_HISTORY.needs,
    METRIC_HISTORY.columns,
)

LEADERBOARD = View(
    "leaderboard",
    "The models of each suite, ranked by each metric over all samples, from their newest snapshots. A board has models "
    "of the same versions of datasets, prompt types, repeats, judge, its version and criteria, definitions and scorer "
    "only. Place 1 has the highest value; a headline metric counts by its lowest bound, so that missing answers help "
    "nobody. Where less is better, like cost, read it from the other end.",
    """
    with ranked as (
        select
            suite, origin, datasets, judge, metric, tier, model, value, n, ci_low, ci_high, reliable, bound_low,
            bound_high, measured_at, dataset_versions, prompt_types, replicates, judge_version, criteria,
            request_parameters,
            rank() over board as place,
            first_value(ci_low) over board as lowest_of_first
        from latest_metrics
        where slice = 'all' and value is not null
        window board as (
            partition by
                suite, origin, datasets, dataset_versions, prompt_types, replicates, judge, judge_version, criteria,
                definition_hash, scorer_version, metric
            order by coalesce(bound_low, value) desc
        )
    )
    select
        suite, origin, datasets, judge, metric, tier, place, model, value, n, ci_low, ci_high, reliable, bound_low,
        bound_high, place = 1 or ci_high >= lowest_of_first as overlaps_first, measured_at, dataset_versions,
        prompt_types, replicates, judge_version, criteria, request_parameters
    from ranked
    """,
    METRIC_HISTORY.needs,
    {
        **_some(METRIC_HISTORY.columns, "suite", "origin", "datasets", "judge", "metric", "tier"),
        "place": "The model's place, from 1; equal values share one.",
        **_some(METRIC_HISTORY.columns, "model", "value", "n", "ci_low", "ci_high", "reliable", *BOUNDS),
        "overlaps_first": "Whether its 95 % interval reaches that of place 1; null where one of them is unknown.",
        **_some(METRIC_HISTORY.columns, "measured_at", *_CONDITIONS),
    },
)

COST_BY_MODEL_AND_DAY = View(
    "cost_by_model_and_day",
    "Calls, tokens and cost of every model, judges included, by day (UTC), with replies that were withdrawn. Imported "
    "calls are separate, because they cost nothing here.",
    """
    select
        cast(answered_at as date) as day, model, origin, count(*) as calls,
        cast(sum(input_tokens) as bigint) as input_tokens, cast(sum(output_tokens) as bigint) as output_tokens,
        case when count(cost_usd) = count(*) then sum(cost_usd) end as cost_usd,
        count(*) - count(cost_usd) as calls_without_price, avg(latency_ms) as latency_ms_mean
    from calls
    group by all
    """,
    (CALLS.table,),
    {
        "day": "The day the replies came, in UTC.",
        "model": "The model that was asked.",
        "origin": "call: asked by evalake; import: imported from recorded results.",
        "calls": "How many replies came.",
        "input_tokens": "Tokens of the prompts, of the calls that tell them.",
        "output_tokens": "Tokens of the replies, of the calls that tell them.",
        "cost_usd": "Their cost in US dollars; null if the price of one is unknown.",
        "calls_without_price": "The number of calls without a known price.",
        "latency_ms_mean": "Mean milliseconds of a call, of those with a latency.",
    },
)

QUARANTINE_REASONS = View(
    "quarantine_reasons",
    "Why rows were refused: each broken rule, with how many rows broke it, when, and one of them as an example.",
    """
    with broken as (select *, unnest(rules) as rule from quarantine)
    select
        table_name, rule, count(*) as refused, count(distinct run_id) as runs, min(quarantined_at) as first_at,
        max(quarantined_at) as last_at, arg_max(reason, (quarantined_at, row_key)) as example,
        arg_max(origin, (quarantined_at, row_key)) as example_origin
    from broken
    group by table_name, rule
    """,
    (QUARANTINE.table,),
    {
        "table_name": "The table the rows were meant for.",
        "rule": "The rule they broke.",
        "refused": "How many rows broke it; a row that broke several rules counts for each.",
        **{"runs": "In how many runs.", "first_at": "The first time.", "last_at": "The last time."},
        "example": "The reason of the last one, in words.",
        "example_origin": "Its source, like file and line number; null where that is not known.",
    },
)

_GENERAL = (REPLIES, METRIC_HISTORY, LATEST_METRICS, LEADERBOARD, COST_BY_MODEL_AND_DAY, QUARANTINE_REASONS)

_RUN = "The run that asked for this item, even where another run landed the row."
# The columns that the result rows of all suites share, in the order of the view over all suites
_SHARED = (
    "landed_by_run", "origin", "dataset", "sample_id", "sample_hash", "model", "prompt_type", "replicate",
    "prompt_hash", "scorer_version",
)  # fmt: skip


def _run_results(contracts: Sequence[Contract]) -> tuple[View, ...]:
    """Build the views of each run's result rows: one for each suite, and one over all."""
    results = {contract.suite: contract for contract in contracts if contract.suite is not None}
    if not results:
        return ()
    by_suite = [_run_results_of(suite, contract) for suite, contract in results.items()]
    described = next(iter(results.values())).column
    shared = ", ".join(_SHARED)
    judges = {suite: "judge" if "judge" in each.column else "null::varchar" for suite, each in results.items()}
    union = " union all ".join(
        f"select run_id, {literal(suite)} as suite, {judges[suite]} as judge, {shared} from {view.name}"
        for view, suite in zip(by_suite, results, strict=True)
    )
    whole = View(
        "run_results",
        "The result rows of each run, over all suites, with the columns that all of them have. A row that several runs "
        "share, for the ledger answered them, is in each. `SUITE_run_results` has all columns of a suite's rows.",
        union,
        (RUN_ITEMS.table, SNAPSHOTS.table, RUNS.table, *(each.table for each in results.values())),
        {
            "run_id": _RUN,
            "suite": "The suite.",
            "judge": "The judge or panel; null where answers are judged by rules.",
            **{name: described[name].description for name in _SHARED},
        },
    )
    return (*by_suite, whole)


def _run_results_of(suite: str, contract: Contract) -> View:
    """Build the view of each run's result rows in a suite, as the run was last measured."""
    key = " and ".join(f"r.{name} is not distinct from i.{name}" for name in ITEM_KEY if name in contract.column)
    columns = ", ".join(f"r.{name}" for name in contract.column)
    has_criteria = "criteria_hash" in contract.column
    asked = "cast(runs.parameters -> '$.criteria' as map(varchar, varchar))[r.prompt_type]"
    criteria = f"and coalesce({asked} = r.criteria_hash, true)" if has_criteria else ""
    return View(
        f"{re.sub(r'[^a-z0-9]', '_', suite.lower())}_run_results",
        f"The rows of `{contract.table}` that belong to each run, imports included, by the scorer that its last "
        "snapshot was measured with; of a run that was not measured, by every scorer.",
        f"""
        select i.run_id, {columns}
        from run_items i join {contract.table} r on {key}
        left join (
            select s.run_id, arg_max(s.scorer_version, (
                coalesce(runs.snapshot_id = s.snapshot_id, false), s.created_at
            )) as scorer_version
            from snapshots s left join runs on runs.run_id = s.run_id group by s.run_id
        ) measured on measured.run_id = i.run_id
        left join runs on runs.run_id = i.run_id
        where i.suite = {literal(suite)} and coalesce(measured.scorer_version = r.scorer_version, true) {criteria}
        """,
        (RUN_ITEMS.table, SNAPSHOTS.table, RUNS.table, contract.table),
        {"run_id": _RUN, **{name: column.description for name, column in contract.column.items()}},
    )


# A table with these columns holds answers about samples
_ANSWERED_BY = {"dataset", "sample_id", "sample_hash", "model", "prompt_type", "replicate", "scorer_version"}
_ANSWER_COLUMNS = {
    "table_name": "The results table.",
    "answer": "The column of that table.",
    "dataset": "The sample's dataset.",
    "sample_id": "The sample.",
    "sample_hash": "The sample's content hash.",
    "model": "The subject model.",
    "judge": "The judge or panel; null where none is involved.",
    "prompt_type": "Which of the suite's prompts was used.",
    "replicate": "Which repeat of the same request this is, from 0.",
    "scorer_version": "The version of the rules that turned the reply into the row.",
    "says": "The answer as text.",
    "share": "A number's place on its scale, 0 to 1; null for an answer that is a word.",
}


def _answers(contracts: Sequence[Contract], needs: tuple[str, ...]) -> View:
    return View(
        "answers",
        "What every result row answers, one line for each answer: the columns with a fixed vocabulary, and the numbers "
        "on a scale with two ends.",
        " union all ".join(select for contract in contracts for select in _selects(contract)),
        needs,
        _ANSWER_COLUMNS,
    )


def _selects(contract: Contract) -> Iterator[str]:
    judge = "judge" if "judge" in contract.column else "cast(null as varchar)"
    for answer, scale in scales(contract).items():
        share = "null" if scale is None else f"({answer} - {scale[0]}) / {scale[1] - scale[0]}"
        yield (
            f"select '{contract.table}' as table_name, '{answer}' as answer, dataset, sample_id, sample_hash, "
            f"model, {judge} as judge, prompt_type, replicate, scorer_version, "
            f"cast({answer} as varchar) as says, cast({share} as double) as share "
            f"from {contract.table} where {answer} is not null"
        )


def _disagreement(needs: tuple[str, ...]) -> View:
    return View(
        "disagreement",
        "Where two models answer differently about the same sample, or two judges about the same answer of a model. "
        "Numbers always differ a little: ask for those with a distance that matters.",
        f"{_PAIRS.format(between='models', who='model', same='judge')} union all "
        f"{_PAIRS.format(between='judges', who='judge', same='model')}",
        needs,
        {
            "between": "models or judges: who differs.",
            **_some(_ANSWER_COLUMNS, *list(_ANSWER_COLUMNS)[:5], "prompt_type", "replicate"),
            "same": "The judge of two models, or the model of two judges; null without a judge.",
            "first": "The first of the two, by name.",
            "first_says": "The answer of the first.",
            "second": "The second of the two.",
            "second_says": "The answer of the second.",
            "distance": "The distance of the answers, 0 to 1 of the scale; 1 for words.",
        },
    )


_PAIRS = """
select distinct
    '{between}' as "between", a.table_name, a.answer, a.dataset, a.sample_id, a.sample_hash, a.prompt_type, a.replicate,
    a.{same} as same, a.{who} as first, a.says as first_says, b.{who} as second, b.says as second_says,
    coalesce(abs(a.share - b.share), 1.0) as distance
from answers a join answers b
    on a.table_name = b.table_name and a.answer = b.answer and a.sample_hash = b.sample_hash
    and a.prompt_type = b.prompt_type and a.replicate = b.replicate and a.scorer_version = b.scorer_version
    and a.{same} is not distinct from b.{same} and a.{who} < b.{who} and a.says <> b.says
"""
