{% include cookiecutter.worker ~ "/src/worker.py" %}
