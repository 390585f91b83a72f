"""The `evalake` command."""
