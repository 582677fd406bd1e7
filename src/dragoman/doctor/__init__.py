"""What is wrong with a corpus, or with a run.

diagnosis.py    what the command does: of_text, of_run
options.py      which text files it is given
findings.py     what was found, how many, where, and what to do about it
kinds.py        what may be wrong with text: words, advice, and from which share on it is how bad

paired_lines.py the pairs of a text, of two files whatever they hold; a sample of them
alignment.py    word translations learned from the sample: does line i belong to line i, or to another?
repeats.py      duplicates, within a corpus and between training and test text
first_pass.py   each pair by itself
second_pass.py  each pair with what the sample taught
mixture.py      several corpora together: weights, tags, target languages
text_checks.py  both passes: all that is found in a corpus

run_checks.py   what a run's log says, in plain words
memory.py       how much memory a training step takes, and which batch size fits
page.py         what was found, with figures, as one HTML file
"""
