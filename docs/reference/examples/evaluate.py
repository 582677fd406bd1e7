import dragoman

evaluation = dragoman.evaluate("runs/first", "test.en", "test.de", beam_size=5)  # or lists of texts
for score in evaluation.scores:
    print(score)
