import dragoman

print(dragoman.ServeError.__mro__)  # what the server raises; its clients get a status and a message
