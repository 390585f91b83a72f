"""Where contracts come from."""
