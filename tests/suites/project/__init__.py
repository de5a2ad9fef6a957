"""Tests of what the kit gives to a project and no user changes.

They need the project around them: test_project.py lays them among the unit tests of a fresh one.
"""
