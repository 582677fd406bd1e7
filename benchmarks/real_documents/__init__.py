"""Real documents, translated by stand-ins of a model and compared with their source by parsers that are not ours."""
