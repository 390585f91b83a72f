"""The steps of a run: plain functions over the core below, and the Prefect task that makes calls."""

if __name__ != "evalake.tasks":
    raise ImportError("this folder is installed as evalake.tasks: import that name")
