"""The warm process, for real: started as the supervisor starts it, and asked by commands as users run them."""
