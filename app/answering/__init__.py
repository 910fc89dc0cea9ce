"""Turn a question and a search into a cited answer; nothing here ranks by itself. Read `ask.py` first."""
