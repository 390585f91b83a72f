"""The suite as one object: what flows, storage and reports know of solidity_audit."""

from suites.base import Suite
from suites.solidity_audit.contract import FINDINGS, RESULTS
from suites.solidity_audit.conversation import converse
from suites.solidity_audit.figures import ANSWERS, FIGURES
from suites.solidity_audit.further import further_metrics
from suites.solidity_audit.index import INDEX
from suites.solidity_audit.labels import INPUTS, assemble
from suites.solidity_audit.metrics import metrics
from suites.solidity_audit.options import DEFAULTS
from suites.solidity_audit.panel import derive
from suites.solidity_audit.people import LABELLING
from suites.solidity_audit.recorded import read_recorded
from suites.solidity_audit.score import SCORER_VERSION, score
from suites.solidity_audit.sources import read_dataset
from suites.solidity_audit.subject_prompts import PROMPT_TYPES
from suites.solidity_audit.truth import SUITE as NAME
from suites.solidity_audit.warnings import warnings

SUITE = Suite(
    name=NAME,
    title="Smart contract audit",
    baseline_models=("baseline/solidity-patterns",),
    baseline_judges=("baseline/overlap-judge",),
    starter=("starter",),
    read_dataset=read_dataset,
    converse=converse,
    score=score,
    scorer_version=SCORER_VERSION,
    results=RESULTS,
    details=(FINDINGS,),
    metrics=metrics,
    read_recorded=read_recorded,
    headline=("sui", "target_detection_rate", "finding_precision", "ece"),
    prompt_types=PROMPT_TYPES,
    options=DEFAULTS,
    figures=FIGURES,
    answers=ANSWERS,
    cluster="cluster",
    derive=derive,
    inputs=INPUTS,
    assemble=assemble,
    further_metrics=further_metrics,
    warnings=warnings,
    labelling=LABELLING,
    index=INDEX,
    queries=(
        "select vulnerability_type, count(*) as samples, sum(target_found::int) as found from solidity_audit_results "
        "where is_vulnerable group by all order by found, samples desc",
        "select classification, count(*) as findings from solidity_audit_findings group by all order by findings desc",
    ),
)
