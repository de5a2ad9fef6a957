"""Print the next steps. This hook changes nothing: a project made without hooks is the same."""

print(
    """
Created {{ cookiecutter.project }}. Next:

    cd {{ cookiecutter.project }}
    make setup    # create .venv and install the dependencies
    make test     # run the unit, contract and end-to-end tests
    make local    # run the stack; the API is http://127.0.0.1:3000

README.md says what to change first, and how to deploy.
"""
)
