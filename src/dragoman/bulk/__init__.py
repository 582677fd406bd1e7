"""Bulk translation: a folder of text translated on a Ray cluster, shard by shard; finished shards are never repeated.

    report = translate_folder("runs/first", "corpus", "corpus.de", ray="auto")

``translate_folder`` (module ``translate``) is the entry point. A shard is a file of the folder; ``shards`` reads and
translates one on any machine, ``record`` remembers the finished ones, ``cluster`` is all that touches Ray.
"""
