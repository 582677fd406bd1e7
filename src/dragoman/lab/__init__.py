"""The laboratory: each claim of the paper as an experiment that anyone can repeat.

    from dragoman.lab.experiment import Lab
    from dragoman.lab.report import run_experiment
    record = run_experiment("masks", Path("lab"), Lab(Path("lab")))

An experiment is a file ``lab/NAME.py`` with ``run(lab: Lab) -> Findings``; ``report`` runs it and writes its page. An
experiment that can use a configuration (``--config``), a trained model (``--run``) or a GPU (``--device``) declares
``TAKES = ("config", "run", "device")``.
"""

EXPERIMENTS: dict[str, str] = {  # in the order of the report: from single steps of the model to whole trainings
    "attention": "Attention is a weighted mean of values, and without positions it does not know their order",
    "scaling": "Without 1/sqrt(d_k) the softmax saturates; width and number of keys decide what gradient is left",
    "projections": "Learned queries, keys, values and heads are each worth having",
    "grow": "From a mean of the source to the full block, each part has its worth, and it depends on the others",
    "positions": "Sinusoids name every position, and a shift is a linear map",
    "masks": "A mask decides who sees whom, and how it is written decides whether it works",
    "heads": "Heads attend to different things, and not all of them matter",
    "induction": "Two layers learn to repeat what they have read, suddenly, by two heads that work together",
    "paths": "Self-attention passes back a small gradient from any distance, a recurrent network one that fades",
    "reach": "The distance from which each layer can copy, fresh and trained; the worth of similarity, scale and tying",
    "complexity": "Self-attention costs n^2 d, a recurrent layer n d^2 (Table 1); what is counted decides the rest",
    "norms": "Layer norm, and where it is placed, decides whether small deep stacks train",
    "training": "Label smoothing, warm-up, averaging and dropout each earn their place",
    "architectures": "In the same minutes the Transformer translates better than recurrent and convolutional models",
    "ablations": "The worth of each size and each part of the base model (Table 3)",
    "parsing": "A small Transformer learns constituency parsing (section 6.3, not the corpus of Table 4)",
    "pitfalls": "Classic bugs fail in ways that a test can catch",
}
"""The claim that each experiment examines, by the experiment's name."""

MINUTES = {
    "attention": 0.1, "scaling": 0.3, "projections": 18.4, "grow": 13.4, "positions": 12.4, "masks": 0.2,
    "heads": 5.7, "induction": 9.0, "paths": 1.6, "reach": 15.0, "complexity": 1.9, "norms": 23.9, "training": 34.8,
    "architectures": 32.1, "ablations": 43.7, "parsing": 1.8, "pitfalls": 0.1,
}  # fmt: skip
"""Minutes that each experiment took on two cores, 0.1 at least; those of ``docs/lab``."""
