{% include cookiecutter.worker ~ "/src/api.py" %}
