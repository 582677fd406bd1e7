"""Search: ids in, ids out; knows no text. ``search`` holds greedy and beam, for anything with start/step/select."""
