"""What the documents say, and what they tell people to type."""
