{% include cookiecutter.worker ~ "/dispatch.py" %}
