"""A contract's rules as CHECK constraints of its Delta table: the last guard, whoever writes."""

from collections.abc import Mapping

from contracts.compile.sql import condition
from contracts.contract import Contract
from contracts.rule import Kind, Severity


def check_constraints(contract: Contract) -> Mapping[str, str]:
    """Build the SQL conditions by rule id, to be added once the table exists.

    Left out are `present` rules, which are NOT NULL in the schema; `warning` rules, which refuse no row; and `matches`
    rules, because Delta's conditions have no regular expressions. Each condition lets a null pass, as the rules do.
    """
    rules = (rule for rule in contract.rules if rule.kind is not Kind.PRESENT and rule.severity is not Severity.WARNING)
    conditions = ((rule.id, condition(rule, contract)) for rule in rules)
    return {rule_id: sql for rule_id, sql in conditions if sql is not None}
