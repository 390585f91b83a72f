"""Sources of contracts, written to a folder."""

import json
from pathlib import Path
from typing import Any

SOURCE = "contract Vault {\n    function take() public { msg.sender.transfer(1); }\n}\n"


def truth(**more: Any) -> dict[str, Any]:
    return {"pair_id": "p", "vulnerability_type": "Access Control", "severity": "high", "difficulty_tier": 2} | more


def write_pair(folder: Path, name: str, given: Any, *, patched: bool = True, text: str = SOURCE) -> None:
    pair = folder / name
    pair.mkdir(parents=True)
    (pair / "ground_truth.json").write_text(given if isinstance(given, str) else json.dumps(given), encoding="utf-8")
    (pair / "vulnerable.sol").write_text(text, encoding="utf-8")
    if patched:
        (pair / "patched.sol").write_text(f"// {name}\n{text}", encoding="utf-8")
