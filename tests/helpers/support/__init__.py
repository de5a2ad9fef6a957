"""What the suite needs of the machine: a container engine, a runtime image, a Python, SAM."""
