"""Trees that forget: built from sparse columns, and kept up to date under inserts and deletes."""
