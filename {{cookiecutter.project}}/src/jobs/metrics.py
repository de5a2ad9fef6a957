{% include cookiecutter.worker ~ "/src/jobs/metrics.py" %}
