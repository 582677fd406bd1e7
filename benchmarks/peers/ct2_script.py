"""The script that a user of CTranslate2 writes: lines in, translations out.

python ct2_script.py FOLDER COMPUTE_TYPE WORKERS THREADS BATCH < IN > OUT
"""

import sys
from pathlib import Path

import ctranslate2
import sentencepiece

folder, compute_type, workers, threads, batch = sys.argv[1:]
spm = sentencepiece.SentencePieceProcessor(model_file=str(Path(folder) / "joint.spm"))
translator = ctranslate2.Translator(
    folder, compute_type=compute_type, inter_threads=int(workers), intra_threads=int(threads)
)
lines = sys.stdin.buffer.read().decode("utf-8").splitlines()
results = translator.translate_batch(spm.encode(lines, out_type=str), beam_size=5, max_batch_size=int(batch))
sys.stdout.buffer.write("".join(spm.decode(result.hypotheses[0]) + "\n" for result in results).encode("utf-8"))
