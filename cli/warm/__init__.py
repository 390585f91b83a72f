"""The warm process of `evalake up`: it has imported everything, and carries out commands in copies of itself."""
