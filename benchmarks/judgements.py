"""Judged audits in any number, made up: what a snapshot of solidity_audit is computed from."""

import hashlib
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evalake.metrics.calibration import equal_width_bin
from evalake.suites.solidity_audit.people import BINS
from evalake.suites.solidity_audit.truth import CLASSIFICATIONS, SEVERITIES, VALID, count_column

MODELS = 5
JUDGES = 2
PROMPT_TYPES = ("direct", "naturalistic", "adversarial")
TYPES = 12
AUDITS_OF_A_PAIR = 2 * len(PROMPT_TYPES)
_OFTEN = (0.20, 0.10, 0.08, 0.20, 0.12, 0.06, 0.06, 0.08, 0.10)
"""How often a finding is of each classification."""


def judged_audits(rows: int, seed: int = 7) -> pl.DataFrame:
    """Make about `rows` rows as metrics read them: models x judges x pairs of twins x prompt types, with a few errors.

    Scores and confidences have two decimals; all else of a row is drawn independently. Columns that no metric of
    the suite reads are left out.
    """
    rng = np.random.default_rng(seed)
    pairs = max(1, rows // (MODELS * JUDGES * AUDITS_OF_A_PAIR))
    shape = (MODELS, JUDGES, pairs, 2, len(PROMPT_TYPES))
    model, judge, pair, twin, prompt = (axis.ravel() for axis in np.indices(shape))
    n = len(model)
    vulnerable = twin == 0
    skill = 0.5 + 0.08 * model
    answered = rng.random(n) > 0.01
    correct = rng.random(n) < skill
    found = vulnerable & correct & (rng.random(n) < skill)
    findings = rng.poisson(1.5, n)
    classified = rng.multinomial(findings, _OFTEN)
    counts = dict(zip(CLASSIFICATIONS, classified.T, strict=True))
    valid = np.sum([counts[name] for name in VALID], axis=0)
    confidence = np.round(rng.beta(5, 2, n), 2)
    of_pair = np.random.default_rng(seed + 1)
    names = np.array([hashlib.sha256(f"{number}".encode()).hexdigest() for number in range(pairs)])
    types = np.array([f"type_{number}" for number in of_pair.integers(0, TYPES, pairs)])
    severities = of_pair.choice(SEVERITIES, pairs)
    tiers = of_pair.choice((1, 2, 3, 4), pairs)

    def known(values: NDArray[Any], where: NDArray[np.bool_] = answered) -> pl.Expr:
        return pl.when(pl.lit(pl.Series(where))).then(pl.lit(pl.Series(values)))

    shares = {name: known(np.round(rng.beta(4, 2, n), 2), answered & found) for name in ("rcir", "ava", "fsv")}
    columns: dict[str, pl.Expr] = dict(
        model=pl.lit(pl.Series(np.array([f"vendor/model-{i}" for i in range(MODELS)])[model])),
        judge=pl.lit(pl.Series(np.array([f"vendor/judge-{i}" for i in range(JUDGES)])[judge])),
        sample_hash=pl.lit(pl.Series(names[pair])) + pl.lit(pl.Series(twin)).cast(pl.String),
        cluster=pl.lit(pl.Series(names[pair])),
        prompt_type=pl.lit(pl.Series(np.array(PROMPT_TYPES)[prompt])),
        replicate=pl.lit(0, pl.Int64),
        is_vulnerable=pl.lit(pl.Series(vulnerable)),
        vulnerability_type=known(types[pair], vulnerable),
        severity=known(severities[pair], vulnerable),
        difficulty_tier=pl.lit(pl.Series(tiers[pair])).cast(pl.Int64),
        judge_error=known(np.full(n, "unparseable judgement"), ~answered),
        subject_error=pl.lit(None, pl.String),
        undecided_findings=pl.lit(None, pl.Int64),
        panel_judges=pl.lit(None, pl.Int64),
        panel_undecided=pl.lit(None, pl.Boolean),
        confidence=known(confidence, answered & (rng.random(n) < 0.95)),
        detection_correct=known(correct),
        said_vulnerable=known(vulnerable == correct),
        target_found=known(found, answered & vulnerable),
        lucky_guess=known(vulnerable & correct & ~found),
        type_match=known(rng.choice(["exact", "semantic", "partial"], n), answered & found),
        **shares,
        total_findings=known(findings),
        valid_findings=known(valid),
        invalid_findings=known(findings - valid),
        **{count_column(name): known(values) for name, values in counts.items()},
        target_credit=known(np.where(found, 1.0, 0.5 * (rng.random(n) < 0.2)), answered & vulnerable),
        location_function_hit=known(rng.random(n) < 0.8, answered & found),
        location_line_hit=known(rng.random(n) < 0.6, answered & found),
        location_line_iou=known(np.round(rng.random(n), 3), answered & found),
        input_tokens=pl.lit(pl.Series(rng.integers(500, 4000, n))),
        output_tokens=pl.lit(pl.Series(rng.integers(100, 2000, n))),
        cost_usd=pl.lit(pl.Series(np.round(rng.random(n) / 100, 6))),
        judge_cost_usd=pl.lit(pl.Series(np.round(rng.random(n) / 100, 6))),
        latency_ms=pl.lit(pl.Series(np.round(rng.gamma(4, 500, n), 1))),
        bonus_confirmed=pl.lit(0, pl.Int64),
        bonus_rejected=pl.lit(0, pl.Int64),
        human_target_found=pl.lit(None, pl.Boolean),
        human_valid_findings=pl.lit(None, pl.Int64),
        human_weight=pl.lit(None, pl.Float64),
        base=pl.lit(pl.Series(names[pair])),
        transformation=pl.lit(None, pl.String),
        code_act=pl.lit(None, pl.String),
        recognised=pl.lit(pl.Series(of_pair.random(n) < 0.3)),
        contaminated=pl.lit(pl.Series(of_pair.random(n) < 0.1)),
    )
    frame = pl.DataFrame().select(**columns)
    tenth = equal_width_bin(pl.col("confidence")).replace_strict(BINS, default=None, return_dtype=pl.String)
    return frame.with_columns(confidence_bin=tenth)
