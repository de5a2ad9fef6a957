{% include cookiecutter.worker ~ "/tests/prove/engine.py" %}
