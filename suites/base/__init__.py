"""The vocabulary of suites: samples, items, exchanges, figures, and the suite itself."""

from suites.base.calibration import Calibration
from suites.base.conversation import Converse, Exchange, Item, Options, Recorded, RecordedFolder, Score
from suites.base.definition import (
    Conversation,
    Data,
    Derived,
    Index,
    Metrics,
    Presentation,
    Prompts,
    Scoring,
    Suite,
)
from suites.base.labelling import Labelling, Labels, Question, Refusal, Seen, Stage
from suites.base.outcomes import Outcomes
from suites.base.result_row import (
    LANDED_BY_RUN,
    JudgedRow,
    ReplyColumns,
    ResultRow,
    identity_columns,
    reply_columns,
    result_contract,
)
from suites.base.roadmap import Roadmap
from suites.base.sample import Dataset, Sample, Skipped
from suites.base.sheets import SheetFormat
from suites.base.tables_of_samples import SampleTable
from suites.base.viewing import Viewing

__all__ = [
    "LANDED_BY_RUN",
    "Calibration",
    "Conversation",
    "Converse",
    "Data",
    "Dataset",
    "Derived",
    "Exchange",
    "Index",
    "Item",
    "JudgedRow",
    "Labelling",
    "Labels",
    "Metrics",
    "Options",
    "Outcomes",
    "Presentation",
    "Prompts",
    "Question",
    "Recorded",
    "RecordedFolder",
    "Refusal",
    "ReplyColumns",
    "ResultRow",
    "Roadmap",
    "Sample",
    "SampleTable",
    "Score",
    "Scoring",
    "Seen",
    "SheetFormat",
    "Skipped",
    "Stage",
    "Suite",
    "Viewing",
    "identity_columns",
    "reply_columns",
    "result_contract",
]
