"""session_review: how good was an agent's investigation of an alert? A critical judge reads it, in two turns."""
