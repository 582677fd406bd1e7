import dragoman

done = dragoman.translate_folder("runs/first", "texts", "translated", ray="local")
print(done)
