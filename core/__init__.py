"""What every room stands on: errors, configuration, hashing, redaction."""
