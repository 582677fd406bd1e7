import dragoman

for found in dragoman.stress("runs/first", src="test.en", ref="test.de", beam_size=1, guard=False):
    print(found.name, found.chrf, found.chrf_loss, found.faulty)
