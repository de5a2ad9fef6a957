{% include cookiecutter.worker ~ "/prove_work.py" %}
