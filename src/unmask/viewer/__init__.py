"""`unmask view`: a local web app to look at runs, compare them and label replies."""
