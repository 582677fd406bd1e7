"""A small, fast student of one or several teachers: sequence-level knowledge distillation, and what it comes to."""
