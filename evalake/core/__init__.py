"""What all other packages use: errors, configuration, hashing, redaction."""
