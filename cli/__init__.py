"""The `evalake` command."""

import cli.leaving  # noqa: F401 - before anything else
