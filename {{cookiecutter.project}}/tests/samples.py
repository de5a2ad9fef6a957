{% include cookiecutter.worker ~ "/samples.py" %}
