import dragoman

compared = dragoman.compare("runs/first", "runs/second", src="test.en", ref="test.de", n_samples=1000, guard=False)
for comparison in compared.comparisons:
    print(comparison.verdict())
