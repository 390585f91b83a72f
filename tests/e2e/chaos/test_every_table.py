"""The rows that faults are injected around are such as every table takes."""

import pytest

from chaos.every_table import sound_row
from evalake.contracts.audit import audit
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.suites.registry import all_contracts


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_rows_keep_every_rule_and_have_keys_of_their_own(contract: Contract) -> None:
    rows = conform([sound_row(contract, number) for number in (1, 2)], contract)
    assert audit(rows, contract).good.equals(rows)
    assert rows.select(contract.key).n_unique() == rows.height
