"""What a model looks at: attention traces and their figures."""
