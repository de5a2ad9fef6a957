"""Generated projects in containers, and what that needs of a machine."""
