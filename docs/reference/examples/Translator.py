import dragoman

translator = dragoman.Translator("runs/first")  # several runs are an ensemble
print(translator.translate("We sing."))  # a string in, one translation out
for translation in translator.translate(["The clever teacher reads the book.", ""], beam_size=5, length_penalty=1.0):
    print(translation.text, translation.score, translation.n_parts)
translator.translate(["We sing."], progress=True)  # on stderr; a function is told (done, total, what)
print(translator.score("We sing.", "Wir singen.").log_prob)
