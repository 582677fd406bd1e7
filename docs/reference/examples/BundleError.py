import dragoman

try:
    dragoman.Translator.load("runs/missing")
except dragoman.BundleError as error:
    print(error)
