{% include cookiecutter.worker ~ "/tests/samples.py" %}
