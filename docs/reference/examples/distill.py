import dragoman

done = dragoman.distill("runs/first", src="train.en", ref="train.de", out="runs/student", preset="student-tiny")
print(done.certificate)
