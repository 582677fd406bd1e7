import dragoman

glossary = dragoman.Glossary([("teacher", "Lehrkraft"), ("IKEA", None)])  # or Glossary.load("terms.tsv")
print(dragoman.Translator.load("runs/first").translate("The clever teacher reads the book.", glossary=glossary))
