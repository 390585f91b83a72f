"""What reports on solidity_audit show: the seven tiers, plots, tables and mistakes, declared."""

from evalake.sdk import figures
from evalake.sdk.people import people_figures
from evalake.suites.solidity_audit.people import LABELLING
from evalake.suites.solidity_audit.score import ADDED_COLUMNS, MISTAKE, add_columns
from evalake.suites.solidity_audit.truth import CLASSIFICATIONS

SUI = figures.Quantity("sui", "security understanding")
TARGETS = figures.Quantity("target_detection_rate", "targets found")
ACCURACY = figures.Quantity("accuracy", "accuracy")
F2 = figures.Quantity("f2", "F2")
PRECISION = figures.Quantity("finding_precision", "valid findings")
HALLUCINATED = figures.Quantity("hallucination_rate", "hallucinated findings", higher_is_better=False)
ECE = figures.Quantity("ece_debiased", "calibration error", higher_is_better=False)
ECE_RAW = figures.Quantity("ece", "with what noise adds", higher_is_better=False)
ECE_ADAPTIVE = figures.Quantity("ece_adaptive", "in bins of equal mass", higher_is_better=False)
LUCKY = figures.Quantity("lucky_guess_rate", "lucky guesses", higher_is_better=False)
COST = figures.Quantity("cost_usd_per_audit", "cost per audit", figures.Unit.US_DOLLARS, higher_is_better=False)
JUDGE_COST = figures.Quantity(
    "judge_cost_usd_per_audit", "of its judgement", figures.Unit.US_DOLLARS, higher_is_better=False
)
LATENCY_P50 = figures.Quantity("latency_ms_p50", "median latency", figures.Unit.MILLISECONDS, higher_is_better=False)
LATENCY_P90 = figures.Quantity("latency_ms_p90", "90th percentile", figures.Unit.MILLISECONDS, higher_is_better=False)
LATENCY_P99 = figures.Quantity("latency_ms_p99", "99th percentile", figures.Unit.MILLISECONDS, higher_is_better=False)
ALTERNATIVES = (
    figures.Quantity("sui_geometric", "geometric mean"),
    figures.Quantity("sui_severity_weighted", "targets by severity"),
    figures.Quantity("sui_partial_credit", "partial credit"),
)
UNDERSTANDING = (
    figures.Quantity("true_understanding_score", "product"),
    figures.Quantity("true_understanding_geometric", "geometric"),
)
BY_SEVERITY = figures.Quantity("target_detection_rate_severity_weighted", "weighed by severity")
CREDIT = figures.Quantity("target_credit", "half for a part")
BY_WORTH = figures.Quantity("finding_precision_weighted", "findings by worth")
INVALID = (
    figures.Quantity("over_flagging_score", "invalid findings", figures.Unit.SCORE, higher_is_better=False),
    figures.Quantity("invalid_cost", "weighed by what they cost", figures.Unit.SCORE, higher_is_better=False),
)
LOCATION = (
    figures.Quantity("location_function_rate", "function named"),
    figures.Quantity("location_line_hit_rate", "line within 3"),
    figures.Quantity("location_line_iou", "overlap of lines"),
)
CONFIDENCE = (
    figures.Quantity("overconfidence_rate", "wrong though above 80 %", higher_is_better=False),
    figures.Quantity("underconfidence_rate", "right though below 50 %", higher_is_better=False),
)
BRIER = (
    figures.Quantity("brier_score", "Brier score", figures.Unit.SCORE, higher_is_better=False),
    figures.Quantity("brier_reliability", "miscalibration", figures.Unit.SCORE, higher_is_better=False),
    figures.Quantity("brier_resolution", "resolution", figures.Unit.SCORE),
    figures.Quantity("brier_uncertainty", "uncertainty", figures.Unit.SCORE, higher_is_better=False),
)
FIRMNESS = figures.Quantity("sui_rank_stability", "lowest rank correlation", figures.Unit.SCORE)
LOST = figures.Quantity("robustness_drop_target_detection_rate", "targets lost", higher_is_better=False)
GAP = figures.Quantity("memorisation_gap", "targets lost by a disguise", higher_is_better=False)
ROBUSTNESS = (
    LOST,
    figures.Quantity("robustness_drop_accuracy", "accuracy lost", higher_is_better=False),
    figures.Quantity("consistency_rate", "same verdict"),
    figures.Quantity("fix_recognised_rate", "fixes noticed"),
    GAP,
)
CONTAMINATION = (
    figures.Quantity("recognition_rate", "said to be known", higher_is_better=False),
    figures.Quantity("contamination_rate", "incident named", higher_is_better=False),
)
DIVERGENCE = (
    figures.Quantity("diverges_from_models_rate", "differs from models", higher_is_better=False),
    figures.Quantity("rules_alone_found_rate", "found by rules alone", higher_is_better=False),
    figures.Quantity("models_alone_found_rate", "found by models alone", higher_is_better=False),
)
BIASES = (
    figures.Quantity("judge_bias_verbosity", "with the audit's length", figures.Unit.SCORE, best_at_zero=True),
    figures.Quantity("judge_bias_own_family", "for its own family", figures.Unit.SCORE, best_at_zero=True),
    figures.Quantity("judge_bias_position", "for the first finding", figures.Unit.SCORE, best_at_zero=True),
)
ERRORS = (
    figures.Quantity("judge_miss_rate", "missed", higher_is_better=False),
    figures.Quantity("judge_false_alarm_rate", "false alarms", higher_is_better=False),
)
OF_ALL_JUDGES = (
    figures.Quantity("unanimous_rate", "unanimous"),
    figures.Quantity("fleiss_kappa", "Fleiss' kappa", figures.Unit.SCORE),
    figures.Quantity("krippendorff_alpha", "Krippendorff's alpha", figures.Unit.SCORE),
    figures.Quantity("icc_2_1_rcir", "ICC, root cause", figures.Unit.SCORE),
    figures.Quantity("icc_2_1_ava", "ICC, attack vector", figures.Unit.SCORE),
    figures.Quantity("icc_2_1_fsv", "ICC, fix", figures.Unit.SCORE),
)
OF_PAIRS = (
    figures.Quantity("percent_agreement", "agreement"),
    figures.Quantity("cohen_kappa", "Cohen's kappa", figures.Unit.SCORE),
    figures.Quantity("gwet_ac1", "Gwet's AC1", figures.Unit.SCORE),
    figures.Quantity("icc_2_1", "ICC", figures.Unit.SCORE),
    figures.Quantity("pearson", "Pearson", figures.Unit.SCORE),
)
OF_PEOPLE = (
    figures.Quantity("judge_human_agreement", "agreement"),
    figures.Quantity("judge_human_kappa", "Cohen's kappa", figures.Unit.SCORE),
    figures.Quantity("judge_human_ac1", "Gwet's AC1", figures.Unit.SCORE),
    figures.Quantity("target_detection_rate_corrected", "targets found, corrected by people"),
    figures.Quantity("finding_precision_corrected", "valid findings, corrected by people"),
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
    figures.Quantity(f"{name.lower()}_share", name.lower().replace("_", " "), higher_is_better=index < 3)
    for index, name in enumerate(CLASSIFICATIONS)
)
REASONING = (
    figures.Quantity("mean_rcir", "root cause"),
    figures.Quantity("mean_ava", "attack vector"),
    figures.Quantity("mean_fsv", "suggested fix"),
)

FIGURES: tuple[figures.Figure, ...] = (
    figures.Ranking(
        "Seven tiers",
        SUI,
        (F2, TARGETS, PRECISION, *REASONING, figures.Quantity("exact_match_rate", "exact type"), ECE),
        note="One tier after the other: is the verdict right, is it right for the known reason, are the findings real, "
        "is the reasoning sound, is the type named, is the confidence earned, and all of it together.",
    ),
    figures.Bars(
        "Security understanding, put together otherwise",
        (SUI, *ALTERNATIVES),
        note="The same parts: their geometric mean, in which good parts make up less for bad ones; targets weighed by "
        "severity; half of the credit for a part of a target or of its worth.",
    ),
    figures.Statistics(
        "How firm the ranking is",
        (FIRMNESS,),
        by_judge=True,
        note="Of the rankings of models under all stated weights of the index: 1 if every one is the same.",
    ),
    figures.Bars(
        "True understanding: targets found x reasoning x findings not invalid",
        UNDERSTANDING,
        note="The product, and its cube root, which one weak factor does not drag down alone.",
    ),
    figures.Bars(
        "Right verdicts against targets found",
        (ACCURACY, TARGETS),
        note="What accuracy has beyond the targets is luck: a contract rightly called vulnerable for another reason.",
    ),
    figures.Bars("Lucky guesses, of the true positives", (LUCKY,)),
    figures.Bars("Targets found, weighed", (TARGETS, BY_SEVERITY, CREDIT)),
    figures.Bars("Where found targets are placed", LOCATION),
    figures.Scatter("Targets found against valid findings", TARGETS, PRECISION),
    figures.Bars("Valid findings, weighed", (PRECISION, BY_WORTH)),
    figures.Bars("Invalid findings of an audit", INVALID),
    figures.Bars("Findings by class, of all findings", SHARES, stacked=True),
    figures.Bars("Reasoning about found targets", REASONING),
    figures.Reliability(
        "Reliability: how often right, against how sure",
        ACCURACY,
        figures.Quantity("mean_confidence", "stated confidence"),
        "confidence_bin",
        note="On the dotted line a model is as often right as it says; below it, it is overconfident.",
    ),
    figures.Bars("Calibration error", (ECE, ECE_RAW, ECE_ADAPTIVE)),
    figures.Bars(
        "Brier score and its parts",
        BRIER,
        note="Score = miscalibration − resolution + uncertainty, but for confidences that differ within a bin.",
    ),
    figures.Bars("Too sure, and not sure enough", CONFIDENCE),
    figures.HeatMap("Targets found by type", TARGETS, "vulnerability_type"),
    figures.HeatMap("Targets found by difficulty", TARGETS, "difficulty_tier"),
    figures.HeatMap("Targets found by severity", TARGETS, "severity"),
    figures.HeatMap("Targets found by prompt", TARGETS, "prompt_type", of_several=True),
    figures.Statistics(
        "Robustness: what a transformation of the contract costs",
        ROBUSTNESS,
        note="Base minus variant, paired by base. A disguise changes names or form; a noticed fix is called safe.",
    ),
    figures.ByPart(
        "Targets lost by transformation", LOST, "transformation", note="Below 0, more were found than in the base."
    ),
    figures.Statistics("Contamination: what a model says it knows", CONTAMINATION),
    figures.ByPart("Targets lost by a disguise, of contracts known and not known", GAP, "contaminated"),
    figures.HeatMap("Targets found by what the statement at the root does", TARGETS, "code_act", of_several=True),
    figures.AgreementMatrix(
        "Agreement of judges on targets found (Cohen's kappa)",
        figures.Quantity("cohen_kappa", "kappa", figures.Unit.SCORE),
        "judge_pair",
    ),
    figures.Statistics("Agreement of all judges of a panel", OF_ALL_JUDGES),
    figures.Statistics(
        "Judge bias: what a judge departs from the others with",
        BIASES,
        by_judge=True,
        note="0 is no bias. Correlation with the length of audits; difference in rates for its own family of models, "
        "and for an audit's first finding.",
    ),
    figures.Decisions(
        "Agreement of judges, decision by decision",
        OF_PAIRS,
        DECISIONS,
        "judge_pair_pooled",
        note="Over all models. Kappa and AC1 are for decisions in words, ICC and Pearson's correlation for numbers.",
    ),
    figures.Statistics("Agreement with people: target found", OF_PEOPLE),
    *people_figures(LABELLING),
    figures.Decisions(
        "Error rates of judges, by which Dawid and Skene weigh them",
        ERRORS,
        (("", "target found"), ("_verdict", "verdict"), ("_finding_valid", "finding valid")),
        "judge_panel",
        note="Over all models: how often a judge denies what the panel holds to be so, or says what it denies.",
    ),
    figures.Statistics("Rules against models as judges: target found", DIVERGENCE),
    figures.ByPart("Where rules differ from models as judges, by type", DIVERGENCE[0], "vulnerability_type"),
    figures.ByJudge(
        "Hallucinated findings by judge",
        HALLUCINATED,
        note="The same audits, each judge's word: where the bars of one model differ, the judge is the property.",
    ),
    figures.Scatter("Cost against score", COST, SUI, pareto=True),
    figures.Scatter("Latency against score", LATENCY_P50, SUI, pareto=True),
    figures.Bars("Latency of an audit", (LATENCY_P50, LATENCY_P90, LATENCY_P99)),
    figures.Bars("Cost of an audit", (COST, JUDGE_COST)),
)

ANSWERS = figures.Answers(
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
