"""Calibration of stated confidence: expected, maximum and adaptive calibration error over bins."""

import numpy as np
import polars as pl

from metrics.composite import Composite, Sums
from metrics.intervals import Array, Integers

BINS = 10


def equal_width_bin(confidence: pl.Expr) -> pl.Expr:
    """The bin 0..9 of a confidence in 0..1: ten equal bins (lo, hi], of which the first also has exactly 0."""
    return sum((confidence > k / BINS for k in range(1, BINS)), start=confidence * 0).cast(pl.Int64)


def equal_mass_bins(confidence: Array, rows: Array) -> Integers:
    """At most ten bins of about equal size that never split equal confidences; -> bin number per confidence, from 0.

    Rows are put in order of confidence, and cut after each tenth; a confidence belongs to the bin of its first row, so
    a heavy one fills its bin and leaves the following ones without rows.
    """
    order = np.argsort(confidence, kind="stable")
    before = np.cumsum(rows[order]) - rows[order]
    bins = np.empty(len(order), dtype=np.int64)
    bins[order] = (before * BINS // rows.sum()).astype(np.int64)
    return bins


def bin_gaps(s: Sums) -> Array:
    """Per bin, |accuracy - mean confidence|; NaN for a bin without rows. Shape [draws, bins]."""
    return np.asarray(np.abs(s["correct"] - s["confidence"]) / s["confident"])


def expected_calibration_error(s: Sums) -> Array:
    """Mean of the bins' gaps weighted by their rows."""
    return np.asarray(np.abs(s["correct"] - s["confidence"]).sum(axis=-1) / s["confident"].sum(axis=-1))


def maximum_calibration_error(s: Sums) -> Array:
    """The largest of the bins' gaps."""
    gaps = bin_gaps(s)
    return np.asarray(np.where(np.isnan(gaps), -np.inf, gaps).max(axis=-1))


def calibration_sums(confidence: pl.Expr, correct: pl.Expr) -> dict[str, pl.Expr]:
    """The sums that the functions above are of, over rows that have both; for composites that contain them, too."""
    known = confidence.is_not_null() & correct.is_not_null()
    return {
        "confident": known,
        "confidence": pl.when(known).then(confidence),
        "correct": known & correct,
    }


def ece(confidence: pl.Expr, correct: pl.Expr) -> Composite:
    """Expected calibration error in ten equal bins, over rows with a confidence (Naeini and others 2015).

    Its bootstrap interval can lie above the value where calibration is nearly perfect: resampling adds gaps.
    """
    sums = calibration_sums(confidence, correct)
    return Composite(expected_calibration_error, sums, n=sums["confident"], by=equal_width_bin(confidence))


def mce(confidence: pl.Expr, correct: pl.Expr) -> Composite:
    """Maximum calibration error in ten equal bins, over rows with a confidence."""
    sums = calibration_sums(confidence, correct)
    return Composite(maximum_calibration_error, sums, n=sums["confident"], by=equal_width_bin(confidence))


def ece_adaptive(confidence: pl.Expr, correct: pl.Expr) -> Composite:
    """Expected calibration error in bins of equal mass, over rows with a confidence (Nguyen and O'Connor 2015).

    Stated confidences cluster (.9, .95, 1), and leave most of ten equal bins empty; these bins follow the data.
    """
    sums = calibration_sums(confidence, correct)
    by = pl.when(sums["confident"]).then(confidence)
    return Composite(expected_calibration_error, sums, n=sums["confident"], by=by, bins=equal_mass_bins)
