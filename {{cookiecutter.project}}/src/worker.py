{% include cookiecutter.worker ~ "/worker.py" %}
