"""Laws, means and errors without sampling."""
