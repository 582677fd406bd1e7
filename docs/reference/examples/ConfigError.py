import dragoman

try:
    dragoman.ModelConfig(src_vocab_size=8000, tgt_vocab_size=8000, n_heads=7)
except dragoman.ConfigError as error:
    print(error)
