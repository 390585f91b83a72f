"""Which columns of a table hold an answer, and on which scale: what its contract declares decides."""

from collections.abc import Mapping
from typing import TypeAlias

from contracts.contract import Column, Contract
from contracts.rule import Kind

Scale: TypeAlias = tuple[float, float] | None
"""The two ends of a number's scale; None for an answer that is a word: two words are equal or not, no more."""


def scales(contract: Contract) -> Mapping[str, Scale]:
    """Find the columns that hold answers: those of a fixed vocabulary (true and false are one), and bounded numbers."""
    scales: dict[str, Scale] = {}
    for column in contract.columns:
        if column.name == "origin":
            continue  # has a fixed vocabulary, but says where the row comes from
        if column.base is bool or column.allowed:
            scales[column.name] = None
        elif (ends := _ends(column, contract)) is not None:
            scales[column.name] = ends
    return scales


def _ends(column: Column, contract: Contract) -> tuple[float, float] | None:
    for rule in contract.rules:
        if rule.column == column.name and rule.kind is Kind.BETWEEN and column.base in (int, float):
            low, high = rule.parameters["minimum"], rule.parameters["maximum"]
            if low is not None and high is not None and low < high:
                return low, high
    return None
