import dragoman

try:
    dragoman.Glossary([("dog", "Hund"), ("dog", "Köter")])
except dragoman.DataError as error:
    print(error)
