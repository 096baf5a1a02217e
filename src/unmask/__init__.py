"""unmask: does this model say what it believes?"""

__version__ = "0.1.0"
