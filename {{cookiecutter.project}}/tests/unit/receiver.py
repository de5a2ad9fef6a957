{% include cookiecutter.worker ~ "/tests/unit/receiver.py" %}
