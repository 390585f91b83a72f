"""The scoring API of session_review, and its events."""
