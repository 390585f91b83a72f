"""Contracts of tables: row models, rules, and the engines they compile to."""

if __name__ != "evalake.contracts":
    raise ImportError("this folder is installed as evalake.contracts: import that name")
