{% include cookiecutter.worker ~ "/prove_points.py" %}
