"""The observer of the paper: sees termination times averaged over all other samples."""
