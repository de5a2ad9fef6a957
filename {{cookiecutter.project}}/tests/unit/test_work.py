{% include cookiecutter.worker ~ "/test_work.py" %}
