"""Fast twins of plain code: functions of tensors only, each held to its plain twin by a test."""
