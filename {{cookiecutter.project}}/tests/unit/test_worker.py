{% include cookiecutter.worker ~ "/test_worker.py" %}
