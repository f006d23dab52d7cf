"""Measures a request before it is submitted: runs it, checks what it claims, says what to submit.

Runs where a user submits; `runner` runs in each job.
"""
