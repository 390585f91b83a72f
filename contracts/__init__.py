"""What a row must be: row models, rules, and what they compile to."""
