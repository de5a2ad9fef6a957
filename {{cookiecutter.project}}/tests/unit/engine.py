{% include cookiecutter.worker ~ "/engine.py" %}
