"""One file per format: bytes to text with pages, headings and a report. Runs in a child process."""
