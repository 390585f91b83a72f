"""What a row must be: row models, rules, and what they compile to."""

if __name__ != "evalake.contracts":
    raise ImportError("this folder is installed as evalake.contracts: import that name")
