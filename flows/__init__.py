"""What runs: one module per flow, the only place that decides order."""
