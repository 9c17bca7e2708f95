"""The observer who sees one released result and knows no other sample."""
