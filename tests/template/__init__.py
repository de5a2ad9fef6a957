"""template.yaml, as SAM and CloudFormation see it."""
