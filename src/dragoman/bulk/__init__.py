"""A folder of text translated on a Ray cluster: shard by shard, each whole or absent, and done once.

``translate_folder`` (module ``translate``) is all that others need. A shard is a file of the folder; what can be done
with one, on whichever machine, is in ``shards``; what is done already is in ``record``. Ray is imported in
``translate`` alone, and there only when it is used.
"""
