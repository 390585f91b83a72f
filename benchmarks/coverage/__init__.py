"""Coverage: how often 95 % intervals hold the true value, and how often tests of equal models say they differ."""
