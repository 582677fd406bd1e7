import dragoman

told = []
events = dragoman.Events(warn=told.append, progress=lambda done, total, what: print(done, total, what))
dragoman.Translator.load("runs/first").translate(["We sing.", "We sing and " * 60], events=events)
print([(note.kind, note.text) for note in told])
