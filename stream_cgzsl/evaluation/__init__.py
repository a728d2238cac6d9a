"""How accurate a generation is. Nothing measured here is ever trained on."""
