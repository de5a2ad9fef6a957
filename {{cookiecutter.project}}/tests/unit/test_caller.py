{% include "auth/" ~ cookiecutter.auth ~ "/test_caller.py" %}
