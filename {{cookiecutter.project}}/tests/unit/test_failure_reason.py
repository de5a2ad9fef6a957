{% include cookiecutter.worker ~ "/tests/unit/test_failure_reason.py" %}
