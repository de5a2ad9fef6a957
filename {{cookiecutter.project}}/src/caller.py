{% include "auth/" ~ cookiecutter.auth ~ "/caller.py" %}
