"""How results are shown: letters of rank, a summary for the terminal, and an HTML page with plots; for any suite."""
