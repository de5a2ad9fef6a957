"""What functions may do and what they do."""
