import dragoman

options = dragoman.TrainOptions(src="train.en", tgt="train.de", minutes=5)
dragoman.train(out="runs/by-options", options=options)
