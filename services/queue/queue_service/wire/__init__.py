"""Protobuf <-> domain, both ways, by thing: the only place where both vocabularies meet."""
