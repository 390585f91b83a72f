"""What reports on solidity_audit show: the seven tiers, plots, tables and mistakes, declared."""

from evalake.sdk.figures import (
    AgreementMatrix,
    Answers,
    Bars,
    ByJudge,
    ByPart,
    Decisions,
    Figure,
    HeatMap,
    Quantity,
    Ranking,
    Reliability,
    Scatter,
    Statistics,
    Unit,
)
from evalake.sdk.people import people_figures
from evalake.suites.solidity_audit.people import LABELLING
from evalake.suites.solidity_audit.score import ADDED_COLUMNS, MISTAKE, add_columns
from evalake.suites.solidity_audit.truth import CLASSIFICATIONS

SUI = Quantity("sui", "security understanding")
TARGETS = Quantity("target_detection_rate", "targets found")
ACCURACY = Quantity("accuracy", "accuracy")
F2 = Quantity("f2", "F2")
PRECISION = Quantity("finding_precision", "valid findings")
HALLUCINATED = Quantity("hallucination_rate", "hallucinated findings", higher_is_better=False)
ECE = Quantity("ece_debiased", "calibration error", higher_is_better=False)
ECE_RAW = Quantity("ece", "with what noise adds", higher_is_better=False)
ECE_ADAPTIVE = Quantity("ece_adaptive", "in bins of equal mass", higher_is_better=False)
LUCKY = Quantity("lucky_guess_rate", "lucky guesses", higher_is_better=False)
COST = Quantity("cost_usd_per_audit", "cost per audit", Unit.US_DOLLARS, higher_is_better=False)
JUDGE_COST = Quantity("judge_cost_usd_per_audit", "of its judgement", Unit.US_DOLLARS, higher_is_better=False)
LATENCY_P50 = Quantity("latency_ms_p50", "median latency", Unit.MILLISECONDS, higher_is_better=False)
LATENCY_P90 = Quantity("latency_ms_p90", "90th percentile", Unit.MILLISECONDS, higher_is_better=False)
LATENCY_P99 = Quantity("latency_ms_p99", "99th percentile", Unit.MILLISECONDS, higher_is_better=False)
ALTERNATIVES = (
    Quantity("sui_geometric", "geometric mean"),
    Quantity("sui_severity_weighted", "targets by severity"),
    Quantity("sui_partial_credit", "partial credit"),
)
UNDERSTANDING = (
    Quantity("true_understanding_score", "product"),
    Quantity("true_understanding_geometric", "geometric"),
)
BY_SEVERITY = Quantity("target_detection_rate_severity_weighted", "weighed by severity")
CREDIT = Quantity("target_credit", "half for a part")
BY_WORTH = Quantity("finding_precision_weighted", "findings by worth")
INVALID = (
    Quantity("over_flagging_score", "invalid findings", Unit.SCORE, higher_is_better=False),
    Quantity("invalid_cost", "weighed by what they cost", Unit.SCORE, higher_is_better=False),
)
LOCATION = (
    Quantity("location_function_rate", "function named"),
    Quantity("location_line_hit_rate", "line within 3"),
    Quantity("location_line_iou", "overlap of lines"),
)
CONFIDENCE = (
    Quantity("overconfidence_rate", "wrong though above 80 %", higher_is_better=False),
    Quantity("underconfidence_rate", "right though below 50 %", higher_is_better=False),
)
BRIER = (
    Quantity("brier_score", "Brier score", Unit.SCORE, higher_is_better=False),
    Quantity("brier_reliability", "miscalibration", Unit.SCORE, higher_is_better=False),
    Quantity("brier_resolution", "resolution", Unit.SCORE),
    Quantity("brier_uncertainty", "uncertainty", Unit.SCORE, higher_is_better=False),
)
FIRMNESS = Quantity("sui_rank_stability", "lowest rank correlation", Unit.SCORE)
LOST = Quantity("robustness_drop_target_detection_rate", "targets lost", higher_is_better=False)
GAP = Quantity("memorisation_gap", "targets lost by a disguise", higher_is_better=False)
ROBUSTNESS = (
    LOST,
    Quantity("robustness_drop_accuracy", "accuracy lost", higher_is_better=False),
    Quantity("consistency_rate", "same verdict"),
    Quantity("fix_recognised_rate", "fixes noticed"),
    GAP,
)
CONTAMINATION = (
    Quantity("recognition_rate", "said to be known", higher_is_better=False),
    Quantity("contamination_rate", "incident named", higher_is_better=False),
)
DIVERGENCE = (
    Quantity("diverges_from_models_rate", "differs from models", higher_is_better=False),
    Quantity("rules_alone_found_rate", "found by rules alone", higher_is_better=False),
    Quantity("models_alone_found_rate", "found by models alone", higher_is_better=False),
)
BIASES = (
    Quantity("judge_bias_verbosity", "with the audit's length", Unit.SCORE, best_at_zero=True),
    Quantity("judge_bias_own_family", "for its own family", Unit.SCORE, best_at_zero=True),
    Quantity("judge_bias_position", "for the first finding", Unit.SCORE, best_at_zero=True),
)
ERRORS = (
    Quantity("judge_miss_rate", "missed", higher_is_better=False),
    Quantity("judge_false_alarm_rate", "false alarms", higher_is_better=False),
)
OF_ALL_JUDGES = (
    Quantity("unanimous_rate", "unanimous"),
    Quantity("fleiss_kappa", "Fleiss' kappa", Unit.SCORE),
    Quantity("krippendorff_alpha", "Krippendorff's alpha", Unit.SCORE),
    Quantity("icc_2_1_rcir", "ICC, root cause", Unit.SCORE),
    Quantity("icc_2_1_ava", "ICC, attack vector", Unit.SCORE),
    Quantity("icc_2_1_fsv", "ICC, fix", Unit.SCORE),
)
OF_PAIRS = (
    Quantity("percent_agreement", "agreement"),
    Quantity("cohen_kappa", "Cohen's kappa", Unit.SCORE),
    Quantity("gwet_ac1", "Gwet's AC1", Unit.SCORE),
    Quantity("icc_2_1", "ICC", Unit.SCORE),
    Quantity("pearson", "Pearson", Unit.SCORE),
)
OF_PEOPLE = (
    Quantity("judge_human_agreement", "agreement"),
    Quantity("judge_human_kappa", "Cohen's kappa", Unit.SCORE),
    Quantity("judge_human_ac1", "Gwet's AC1", Unit.SCORE),
    Quantity("target_detection_rate_corrected", "targets found, corrected by people"),
    Quantity("finding_precision_corrected", "valid findings, corrected by people"),
)
DECISIONS = (
    ("", "target found"),
    ("_verdict", "verdict"),
    ("_confidence", "confidence"),
    ("_finding_class", "finding class"),
    ("_type_match", "type match"),
    ("_rcir", "root cause"),
    ("_ava", "attack vector"),
    ("_fsv", "fix"),
    ("_location", "location"),
    ("_bonus", "bonus"),
)
SHARES = tuple(
    Quantity(f"{name.lower()}_share", name.lower().replace("_", " "), higher_is_better=index < 3)
    for index, name in enumerate(CLASSIFICATIONS)
)
REASONING = (
    Quantity("mean_rcir", "root cause"),
    Quantity("mean_ava", "attack vector"),
    Quantity("mean_fsv", "suggested fix"),
)

FIGURES: tuple[Figure, ...] = (
    Ranking(
        "Seven tiers",
        SUI,
        (F2, TARGETS, PRECISION, *REASONING, Quantity("exact_match_rate", "exact type"), ECE),
        note="One tier after the other: is the verdict right, is it right for the known reason, are the findings real, "
        "is the reasoning sound, is the type named, is the confidence earned, and all of it together.",
    ),
    Bars(
        "Security understanding, put together otherwise",
        (SUI, *ALTERNATIVES),
        note="The same parts: their geometric mean, in which good parts make up less for bad ones; targets weighed by "
        "severity; half of the credit for a part of a target or of its worth.",
    ),
    Statistics(
        "How firm the ranking is",
        (FIRMNESS,),
        by_judge=True,
        note="Of the rankings of models under all stated weights of the index: 1 if every one is the same.",
    ),
    Bars(
        "True understanding: targets found x reasoning x findings not invalid",
        UNDERSTANDING,
        note="The product, and its cube root, which one weak factor does not drag down alone.",
    ),
    Bars(
        "Right verdicts against targets found",
        (ACCURACY, TARGETS),
        note="What accuracy has beyond the targets is luck: a contract rightly called vulnerable for another reason.",
    ),
    Bars("Lucky guesses, of the true positives", (LUCKY,)),
    Bars("Targets found, weighed", (TARGETS, BY_SEVERITY, CREDIT)),
    Bars("Where found targets are placed", LOCATION),
    Scatter("Targets found against valid findings", TARGETS, PRECISION),
    Bars("Valid findings, weighed", (PRECISION, BY_WORTH)),
    Bars("Invalid findings of an audit", INVALID),
    Bars("Findings by class, of all findings", SHARES, stacked=True),
    Bars("Reasoning about found targets", REASONING),
    Reliability(
        "Reliability: how often right, against how sure",
        ACCURACY,
        Quantity("mean_confidence", "stated confidence"),
        "confidence_bin",
        note="On the dotted line a model is as often right as it says; below it, it is overconfident.",
    ),
    Bars("Calibration error", (ECE, ECE_RAW, ECE_ADAPTIVE)),
    Bars(
        "Brier score and its parts",
        BRIER,
        note="Score = miscalibration − resolution + uncertainty, but for confidences that differ within a bin.",
    ),
    Bars("Too sure, and not sure enough", CONFIDENCE),
    HeatMap("Targets found by type", TARGETS, "vulnerability_type"),
    HeatMap("Targets found by difficulty", TARGETS, "difficulty_tier"),
    HeatMap("Targets found by severity", TARGETS, "severity"),
    HeatMap("Targets found by prompt", TARGETS, "prompt_type", of_several=True),
    Statistics(
        "Robustness: what a transformation of the contract costs",
        ROBUSTNESS,
        note="Base minus variant, paired by base. A disguise changes names or form; a noticed fix is called safe.",
    ),
    ByPart("Targets lost by transformation", LOST, "transformation", note="Below 0, more were found than in the base."),
    Statistics("Contamination: what a model says it knows", CONTAMINATION),
    ByPart("Targets lost by a disguise, of contracts known and not known", GAP, "contaminated"),
    HeatMap("Targets found by what the statement at the root does", TARGETS, "code_act", of_several=True),
    AgreementMatrix(
        "Agreement of judges on targets found (Cohen's kappa)",
        Quantity("cohen_kappa", "kappa", Unit.SCORE),
        "judge_pair",
    ),
    Statistics("Agreement of all judges of a panel", OF_ALL_JUDGES),
    Statistics(
        "Judge bias: what a judge departs from the others with",
        BIASES,
        by_judge=True,
        note="0 is no bias. Correlation with the length of audits; difference in rates for its own family of models, "
        "and for an audit's first finding.",
    ),
    Decisions(
        "Agreement of judges, decision by decision",
        OF_PAIRS,
        DECISIONS,
        "judge_pair_pooled",
        note="Over all models. Kappa and AC1 are for decisions in words, ICC and Pearson's correlation for numbers.",
    ),
    Statistics("Agreement with people: target found", OF_PEOPLE),
    *people_figures(LABELLING),
    Decisions(
        "Error rates of judges, by which Dawid and Skene weigh them",
        ERRORS,
        (("", "target found"), ("_verdict", "verdict"), ("_finding_valid", "finding valid")),
        "judge_panel",
        note="Over all models: how often a judge denies what the panel holds to be so, or says what it denies.",
    ),
    Statistics("Rules against models as judges: target found", DIVERGENCE),
    ByPart("Where rules differ from models as judges, by type", DIVERGENCE[0], "vulnerability_type"),
    ByJudge(
        "Hallucinated findings by judge",
        HALLUCINATED,
        note="The same audits, each judge's word: where the bars of one model differ, the judge is the property.",
    ),
    Scatter("Cost against score", COST, SUI, pareto=True),
    Scatter("Latency against score", LATENCY_P50, SUI, pareto=True),
    Bars("Latency of an audit", (LATENCY_P50, LATENCY_P90, LATENCY_P99)),
    Bars("Cost of an audit", (COST, JUDGE_COST)),
)

ANSWERS = Answers(
    correct="detection_correct",
    mistake=MISTAKE,
    label="is_vulnerable",
    sample=("sample_hash", "judge", "prompt_type", "replicate"),
    group="mistake",
    shown=(
        ("sample_id", "sample"),
        ("vulnerability_type", "type"),
        ("said_vulnerable", "called vulnerable"),
        ("confidence", "confidence"),
        ("target_found", "target found"),
        ("contract_excerpt", "contract"),
        ("reply_start", "audit"),
        ("judge_words", "the judge's words"),
    ),
    reply_of=MISTAKE,
    reply_length=600,
    add_columns=add_columns,
    added_columns=ADDED_COLUMNS,
)
