{% include cookiecutter.worker ~ "/work.py" %}
