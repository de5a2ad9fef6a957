{% include cookiecutter.worker ~ "/tests/unit/test_last_words.py" %}
