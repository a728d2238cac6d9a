"""Records with Confluent's framing: a zero byte, the id of a schema in a registry, and Avro or Protobuf."""
