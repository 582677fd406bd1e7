import dragoman

translation = dragoman.Translator.load("runs/first")("The clever teacher reads the book.", n_best=3, alignments=True)
print(isinstance(translation, dragoman.Translation), translation.score, translation.confidence, translation.alignment)
print([other.text for other in translation.alternatives], [note.kind for note in translation.notes])
