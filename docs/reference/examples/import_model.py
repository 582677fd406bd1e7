import dragoman

exported = dragoman.export("runs/first", to="ctranslate2", out="elsewhere")
run = dragoman.import_model(exported, "runs/imported", src_lang="en", tgt_lang="de")
print(dragoman.Translator.load(run).translate("We sing."))
