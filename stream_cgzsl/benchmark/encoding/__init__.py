"""From words to vectors: texts, the encoder that reads them, and the data set they become."""
