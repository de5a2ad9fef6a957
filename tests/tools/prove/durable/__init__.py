"""Durable functions: jobs as executions."""
