"""The rules as data: one table module per theme, none of them with logic of its own."""
