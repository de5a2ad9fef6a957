{% include cookiecutter.worker ~ "/src/work.py" %}
