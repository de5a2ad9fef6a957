"""What each function asks AWS for, and whether the template lets it: no more, and no less.

calls      runs jobs on the laptop stack and notes every call
policies   reads who may do what in the template, translated by SAM
evaluator  decides as IAM would
document   writes docs/permissions.md
"""
