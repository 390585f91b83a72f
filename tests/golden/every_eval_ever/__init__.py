"""The published schemas of Every Eval Ever."""

import json
from pathlib import Path

EVAL, INSTANCE = (
    json.loads(Path(__file__).with_name(f"{name}.schema.json").read_text()) for name in ("eval", "instance_level_eval")
)
