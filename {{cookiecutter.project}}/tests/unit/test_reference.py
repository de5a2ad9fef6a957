{% include cookiecutter.worker ~ "/tests/unit/test_reference.py" %}
