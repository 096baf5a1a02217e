"""Folders of the reference code, in and out."""
