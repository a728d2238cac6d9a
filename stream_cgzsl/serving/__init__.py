"""What is published and how it answers: generations, scoring, following a stream, answers to samples."""
