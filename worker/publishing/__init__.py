"""Examples of files and generators, made records and written to a topic."""
