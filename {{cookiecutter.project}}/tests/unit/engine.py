{% include cookiecutter.worker ~ "/tests/unit/engine.py" %}
