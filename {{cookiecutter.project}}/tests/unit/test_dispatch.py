{% include cookiecutter.worker ~ "/tests/unit/test_dispatch.py" %}
