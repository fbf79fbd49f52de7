"""What results look like to a person in a terminal."""
