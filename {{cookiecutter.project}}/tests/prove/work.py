{% include cookiecutter.worker ~ "/tests/prove/work.py" %}
