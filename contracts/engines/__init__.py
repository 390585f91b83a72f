"""Engines that contracts compile to: Arrow, CHECK constraints, Great Expectations, ODCS, SQL."""
