import dragoman

found = dragoman.explain("runs/first", "The clever teacher reads the book.")
words = found.by_words()
print(words.src.tokens, words.tgt.tokens)
print(words.alignment().round(2))  # (target words, source words)
print(found.layers("encoder")[0].shape)  # the first layer: (heads, queries, keys)
print([(step.chosen, step.rank) for step in found.steps])  # rank 1: nothing was likelier
found.save("explanation.html")  # or .svg, .png, .pdf, or a folder for all of them
