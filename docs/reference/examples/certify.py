import dragoman

exported = dragoman.export("runs/first", to="ctranslate2", out="exported-float32")
certificate = dragoman.certify("runs/first", exported, src="test.en", ref="test.de")
print(certificate)
