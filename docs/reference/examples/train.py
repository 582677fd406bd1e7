import dragoman

trained = dragoman.train("train.en", "train.de", out="runs/example", minutes=5, overrides=["model.dropout=0.2"])
print(trained.run, trained.reason, trained.step, trained.validation.bleu)
