"""The steps of a run: plain functions over the core below, and the Prefect task that makes calls."""
