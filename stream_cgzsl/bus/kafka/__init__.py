"""The bus on an Apache Kafka cluster, with kafka-python as the client."""
