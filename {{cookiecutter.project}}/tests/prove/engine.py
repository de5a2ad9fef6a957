{% include cookiecutter.worker ~ "/prove_engine.py" %}
