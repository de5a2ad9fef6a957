{% include cookiecutter.worker ~ "/src/failure_reason.py" %}
