{% include cookiecutter.worker ~ "/test_dispatch.py" %}
