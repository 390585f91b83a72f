"""SQL queries in a confined process, views, and the catalogue."""
