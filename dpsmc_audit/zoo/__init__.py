"""Sequential mechanisms whose exact law is known, as examples for audits."""
