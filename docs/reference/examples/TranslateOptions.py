import dragoman

options = dragoman.TranslateOptions(sample=True, temperature=0.8, top_p=0.95, seed=7)
print(dragoman.Translator.load("runs/first").translate(["We sing."], options))
