{% include cookiecutter.worker ~ "/src/jobs/lifecycle.py" %}
