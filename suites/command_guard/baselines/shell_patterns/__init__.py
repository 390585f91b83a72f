"""`baseline/shell-patterns`: a rule-based shell guard, the bar that models must beat.

The command line is parsed with tree-sitter's bash grammar into a small model, and tables of knowledge about programs,
paths, options and languages decide. Do not use it as protection: it is a yardstick, and whoever knows it can evade it.
"""

from suites.command_guard.baselines.shell_patterns.engine import guard
from suites.command_guard.baselines.shell_patterns.model import Decision

__all__ = ["Decision", "guard"]
