"""What every Python process of the command does first."""
