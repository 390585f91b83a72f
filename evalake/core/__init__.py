"""The base of all other packages: errors, configuration, hashing, redaction."""
