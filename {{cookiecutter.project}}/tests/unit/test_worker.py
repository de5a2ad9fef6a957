{% include cookiecutter.worker ~ "/tests/unit/test_worker.py" %}
