"""What belongs together: cuts, the records between two cuts, and the ledger of all of them."""
