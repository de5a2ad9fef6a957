{% include cookiecutter.worker ~ "/src/last_words.py" %}
