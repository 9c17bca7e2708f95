"""What an observer compares: two laws over the same outcomes, one file for each observer."""
