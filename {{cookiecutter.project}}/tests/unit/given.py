{% include cookiecutter.worker ~ "/tests/unit/given.py" %}
