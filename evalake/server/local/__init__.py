"""Prefect on this machine: the temporary server of one command, and its database."""
