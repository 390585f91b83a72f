"""How a model is called: requests, clients, limits and embedded baselines."""
