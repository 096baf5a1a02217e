"""How Sphinx makes a site of these pages: `make site`. No network is used."""

project = "unmask"
copyright = "The unmask developers"  # noqa: A001  (Sphinx asks for this name)
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["pictures/README.md", "examples"]
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
suppress_warnings = ["myst.header"]
html_theme = "furo"
html_title = "unmask"
html_copy_source = False
html_show_sphinx = False
