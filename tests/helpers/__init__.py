"""What the kit's tests share."""
