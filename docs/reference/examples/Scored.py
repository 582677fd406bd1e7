import dragoman

translator = dragoman.Translator.load("runs/first")
scored = translator.score("We sing.", "Wir singen.", alignments=True)
print(
    isinstance(scored, dragoman.Scored),
    scored.log_prob,
    scored.score,
    scored.alignment,
    list(zip(scored.tokens, scored.token_log_probs)),
)
