"""The recorder and what it is made of: what runs inside the training process."""
