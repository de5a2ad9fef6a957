{% include cookiecutter.worker ~ "/src/jobs/job.py" %}
