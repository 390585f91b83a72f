"""Where rows live: the lake, the call ledger, landing, snapshots, SQL and maintenance."""
