{% include "auth/" ~ cookiecutter.auth ~ "/src/caller.py" %}
