{% include cookiecutter.worker ~ "/test_faults.py" %}
