"""How good a generation is, found beside the stream: nothing in here is ever trained on."""
