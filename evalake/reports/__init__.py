"""How results are shown: rank bands, a summary for the terminal, and an HTML page with plots; for any suite."""
