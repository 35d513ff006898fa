"""The OpenAPI document: its paths, schemas, texts and examples."""
