{% include cookiecutter.worker ~ "/src/jobs/reference.py" %}
