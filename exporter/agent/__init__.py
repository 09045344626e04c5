"""The node agent: the loop, what it watches, and the program around it."""
