"""Tests of src/: each function in this process, on an emulated AWS."""
