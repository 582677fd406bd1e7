import dragoman

config = dragoman.Config.from_mapping(
    {"model": {"preset": "small"}, "data": {"train": {"src": "train.en", "tgt": "train.de"}}}
)
print(config.to_yaml())  # every default written out
print(config.train.max_steps)
