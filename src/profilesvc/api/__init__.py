"""HTTP: declare, admit, parse, render."""
