import dragoman

try:
    dragoman.Translator.load("demo")
except dragoman.UnreadableError as error:
    print(f"{error}: try again later")
