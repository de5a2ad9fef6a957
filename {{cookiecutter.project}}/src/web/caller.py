{% include "auth/" ~ cookiecutter.auth ~ "/src/web/caller.py" %}
