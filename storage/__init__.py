"""Storage of rows: the lake, the call ledger, landing, snapshots, SQL and maintenance."""

if __name__ != "evalake.storage":
    raise ImportError("this folder is installed as evalake.storage: import that name")
