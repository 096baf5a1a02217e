"""Figures for papers and slides."""
