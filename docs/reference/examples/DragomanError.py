import dragoman

try:
    dragoman.Translator.load("runs/missing")
except dragoman.DragomanError as error:  # whatever dragoman itself refuses
    print(error)
