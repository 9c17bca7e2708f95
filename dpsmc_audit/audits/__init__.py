"""Audits, one file for each observer: laws, the e^{±epsilon} check, a verdict."""
