{% include cookiecutter.worker ~ "/tests/unit/test_work.py" %}
