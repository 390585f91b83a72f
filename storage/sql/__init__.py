"""SQL over the tables: queries in a process of their own, views, and the catalogue."""
