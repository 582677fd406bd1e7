import dragoman

evaluation = dragoman.evaluate("runs/first", src="test.en", ref="test.de", beam_size=5)
for score in evaluation.scores:
    print(score)
