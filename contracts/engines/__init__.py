"""What contracts compile to: Arrow schemas, CHECK constraints, Great Expectations, ODCS, SQL, words."""
