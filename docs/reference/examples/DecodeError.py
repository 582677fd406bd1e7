import dragoman

translator = dragoman.Translator.load("runs/first")
try:
    print(translator.translate(["We sing."]))
except dragoman.DecodeError as error:  # such as a sentence that does not fit into memory
    print(error)
