{% include cookiecutter.worker ~ "/src/jobs/attempts.py" %}
