"""The result rows of an auditor that gives every contract the same verdict, with confidence 1 and no finding."""

from collections.abc import Mapping

import polars as pl


def always(*, vulnerable: bool) -> Mapping[str, pl.Expr]:
    """Build the columns that SUI reads, as any judge would fill them in: there is nothing to judge but the verdict."""
    truth = pl.col("is_vulnerable")
    return {
        "said_vulnerable": pl.lit(vulnerable),
        "confidence": pl.lit(1.0),
        "detection_correct": truth if vulnerable else ~truth,
        "target_found": pl.when(truth).then(False),
        **dict.fromkeys(("total_findings", "valid_findings", "invalid_findings"), pl.lit(0, pl.Int64)),
        **dict.fromkeys(("rcir", "ava", "fsv"), pl.lit(None, pl.Float64)),
    }
