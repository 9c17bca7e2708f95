"""What a person sees: tables, files, and the table that a sweep ends with."""
