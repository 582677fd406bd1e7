import dragoman

folder = dragoman.export("runs/first", to="ctranslate2", quantization="int8", out="exported")
print(sorted(path.name for path in folder.iterdir()))
