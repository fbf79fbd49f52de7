"""The log: where events come from and results go."""
