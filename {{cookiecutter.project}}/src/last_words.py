{% include cookiecutter.worker ~ "/last_words.py" %}
