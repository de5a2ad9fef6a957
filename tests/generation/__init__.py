"""Projects come out right, whichever tool generates them and whatever the answers."""
