"""The checks: each looks at one command, asks the rule tables, and answers with a decision or None."""
