"""Prints the next steps. It changes nothing: a project made without hooks is the same."""

print(
    """
Created {{ cookiecutter.project }}. Next:

    cd {{ cookiecutter.project }}
    make setup    # a virtual environment with everything for tests and the laptop stack
    make test     # the unit and end-to-end tests
    make local    # the API on http://127.0.0.1:3000

README.md has the commands without make, and the way to AWS.
"""
)
