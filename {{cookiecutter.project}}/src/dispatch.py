{% include cookiecutter.worker ~ "/src/dispatch.py" %}
