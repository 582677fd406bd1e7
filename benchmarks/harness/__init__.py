"""What the comparisons share: systems in processes of their own, turns, the same text, the same weights."""
