"""What surrounds a run: its context, progress, logs, resources, runner, secrets and server."""
