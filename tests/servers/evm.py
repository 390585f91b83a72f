"""The EVM, and the Solidity compiler, that carry out attacks on contracts: npm packages, run by Node.js."""

import shutil
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "unit" / "suites" / "solidity_audit" / "evm"


def is_installed() -> bool:
    """Returns whether there is a Node.js, and `make test` or `npm ci` has installed the packages."""
    return shutil.which("node") is not None and (FOLDER / "node_modules").is_dir()
