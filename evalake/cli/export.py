"""`evalake export`: contracts as Open Data Contract Standard documents."""

from pathlib import Path
from typing import Annotated

import typer

from evalake.cli.options import JsonOption


def export(
    format_: Annotated[str, typer.Argument(help="contracts: one ODCS YAML a table.", metavar="FORMAT")],
    out: Annotated[Path, typer.Option(help="The folder it goes into.", metavar="DIR")] = Path("contracts-odcs"),
    json: JsonOption = False,
) -> None:
    """Write the data contracts of all tables as Open Data Contract Standard documents."""
    from evalake.contracts.engines.odcs import odcs_yaml
    from evalake.core.errors import LakeError, UsageError
    from evalake.core.files import make_folder, write_file
    from evalake.suites.registry import all_contracts

    if format_ != "contracts":
        raise UsageError(f"there is no export format {format_}; there is: contracts")
    try:
        make_folder(out)
        for contract in all_contracts():
            write_file(out / f"{contract.table}.yaml", odcs_yaml(contract))
    except OSError as error:
        raise LakeError(f"cannot write the contracts to {out}: {error.strerror}") from error
    if json:
        from evalake.cli import output as show

        show.as_json({"out": str(out), "contracts": [contract.table for contract in all_contracts()]})
        return
    typer.echo(f"{len(all_contracts())} contracts in {out}")
