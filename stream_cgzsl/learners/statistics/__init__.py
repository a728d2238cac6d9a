"""What is kept of the classes: descriptions, counts, means and one pooled scatter; and what their learners share."""
