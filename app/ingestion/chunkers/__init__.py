"""One file per way to cut a text into pieces with exact offsets."""
