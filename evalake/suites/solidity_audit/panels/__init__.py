"""Several judges of the same audits: the rows of their panel, and how far they agree."""
