"""The bus on an Apache Kafka cluster with librdkafka as the client of what is read and written most: the data's way."""
