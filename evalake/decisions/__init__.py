"""What is concluded from measured runs: comparisons, decisions, plans and explanations."""
