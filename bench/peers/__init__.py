"""`unmask` next to what people use today: the same scenarios, the same endpoint, the same core."""
