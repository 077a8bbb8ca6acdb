"""What an instructor gets from the same notebooks: plans by the minutes of the pages, decks of slides, sheets."""
