{% include cookiecutter.worker ~ "/tests/local/test_faults.py" %}
