"""Find what is wrong with a corpus or with a run, and say what to do about it.

    from dragoman.doctor.diagnosis import diagnose_run
    print(diagnose_run(Path("runs/first")).as_text())

diagnosis.py    the two calls of ``dragoman doctor``: diagnose_text, diagnose_run
options.py      options that name the text to examine
findings.py     a finding: how many lines, which, how bad, and the advice
kinds.py        every kind of finding about text: its words, and the share that makes it a warning or an error
facts.py        counts and lengths of a corpus or a run, as a table

paired_lines.py read the sentence pairs of a text in chunks, and draw a sample of them
alignment.py    learn word translations from the sample, and score whether two lines translate each other
repeats.py      duplicates within a corpus, and pairs shared by training and test text
first_pass.py   checks that need one pair only
second_pass.py  checks that need what was learned from the sample
text_checks.py  all checks of one corpus: both passes, then the whole
mixture.py      checks of several corpora that are trained on together

run_checks.py   checks of a run's log
memory.py       the largest batch whose training step fits in memory
page.py         the report with figures as one HTML file
"""
