import dragoman

found = dragoman.augment("made", forward="runs/first", src="train.en", n_best=2, drop_worst=0.1)
print(found.config, found.counts["forward"])
