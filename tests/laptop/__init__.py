"""Tests of `local/`, the laptop stack: every rule of Lambda, SQS and API Gateway it follows."""
