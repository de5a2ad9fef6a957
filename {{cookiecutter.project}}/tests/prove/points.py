{% include cookiecutter.worker ~ "/tests/prove/points.py" %}
