{% include cookiecutter.worker ~ "/tests/unit/test_attempts.py" %}
