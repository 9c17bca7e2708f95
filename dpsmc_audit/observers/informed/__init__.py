"""The observer who sees one released result and knows every other sample."""
