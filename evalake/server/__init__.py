"""Scores on demand: the API, its events, and the processes beside it."""

from evalake.core.prefect_settings import ignore_working_directory

ignore_working_directory()  # each process that evalake starts is a module of this package
