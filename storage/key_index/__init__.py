"""The key index: where in the ledger's files each key is, kept on this machine so that no run reads all keys."""
