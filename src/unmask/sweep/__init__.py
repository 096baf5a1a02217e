"""`unmask sweep`: many models, data sets and treatments as one plan of run folders."""
