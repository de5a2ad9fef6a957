"""The exceptions that concern a job as a whole."""


class PermanentError(Exception):
    """Raise it in work.py when another attempt cannot help: the job fails at once."""


class JobCancelled(Exception):
    """Raise it in work.py to end a job whose owner has asked to cancel it."""


class NewerSchema(Exception):
    """A newer version of this code wrote the item. Only that version may change it."""
