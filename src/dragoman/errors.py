"""The errors of dragoman.

    Exception
    └── DragomanError            anything that dragoman itself refuses
        ├── ConfigError          a setting is unknown, impossible or missing (also a ValueError)
        ├── DataError            a corpus, a line or a tokenizer cannot be used
        ├── BundleError          a trained model or a checkpoint on disk cannot be used
        ├── DecodeError          a translation cannot be made as asked
        └── ServeError           the server cannot do what was asked

A message says what is wrong and with which value, what the rule is, and what to do; where a file is at
fault it names the file and, if there is one, the line. The command line prints it in one line and exits with 2.
"""


class DragomanError(Exception):
    """Base of everything that dragoman refuses; catch it to catch them all."""


class ConfigError(DragomanError, ValueError):
    """A setting is unknown, impossible or missing."""


class DataError(DragomanError):
    """A corpus, a line of it or a tokenizer cannot be used."""


class BundleError(DragomanError):
    """A trained model or a checkpoint on disk is missing, damaged or not ours."""


class DecodeError(DragomanError):
    """A translation cannot be made as asked."""


class ServeError(DragomanError):
    """The server cannot do what was asked."""


def not_installed(what: str, package: str) -> str:
    """The message where an optional package is missing: its name on any index, wherever dragoman came from."""
    return f"{what} needs {package}, which is not installed: pip install {package}"
