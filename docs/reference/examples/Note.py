import dragoman

translation = dragoman.Translator.load("runs/first").translate("We sing.", prefix="Sie", include=["Haus"])
for note in translation.notes:
    print(isinstance(note, dragoman.Note), note.kind, note.text)
