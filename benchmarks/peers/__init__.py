"""Peers: whole commands of evalake beside those of other tools, against one model server with the same prompts."""
