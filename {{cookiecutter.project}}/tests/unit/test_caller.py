{% include "auth/" ~ cookiecutter.auth ~ "/tests/unit/test_caller.py" %}
