"""Keep the truth of one collection; nothing here ranks but exact vector distance. Read `port.py` first."""
