"""The seen/unseen balance: accuracy curves over offsets, from rows that were not trained on."""
