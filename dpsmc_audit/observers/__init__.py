"""Who sees what: one room for each observer, with its law and its audit."""
