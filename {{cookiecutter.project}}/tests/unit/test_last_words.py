{% include cookiecutter.worker ~ "/test_last_words.py" %}
