"""The suites of other people's expected values: who expects what, and where it is written."""

from __future__ import annotations

from typing import NamedTuple


class Suite(NamedTuple):
    """One suite; its values are counted, and the page has a row for it."""

    key: str
    peer: str
    holds: str  # what is expected
    source: str  # where the values come from


GITHUB = "https://github.com/"
MARIAN = "PyPI pymarian 1.12.42, trained and run by the test"
SACREBLEU = f"{GITHUB}mjpost/sacrebleu test/"
T2T = f"{GITHUB}tensorflow/tensor2tensor tensor2tensor/"
FAIRSEQ = f"{GITHUB}facebookresearch/fairseq tests/"
SOCKEYE = f"{GITHUB}awslabs/sockeye test/unit/"
JOEYNMT = f"{GITHUB}joeynmt/joeynmt test/unit/"
ANNOTATED = f"{GITHUB}harvardnlp/annotated-transformer the_annotated_transformer.py"
PAPER = "https://arxiv.org/abs/1706.03762"

SUITES = [
    Suite("marian-scores", "Marian", "log-probabilities of given translations, six models, within 1e-4 nats", MARIAN),
    Suite("marian-allow-unk", "Marian", "translations with --allow-unk, greedy and beam 4, and their scores", MARIAN),
    Suite("marian-default", "Marian", "translations as Marian makes them by default, without unk", MARIAN),
    Suite("marian-folder", "Marian", "the folder that a training writes, imported as it lies there", MARIAN),
    Suite("sacrebleu-bleu", "sacreBLEU", "BLEU, one reference", f"{SACREBLEU}test_bleu.py"),
    Suite("sacrebleu-references", "sacreBLEU", "BLEU, two references", f"{SACREBLEU}test_bleu.py"),
    Suite("sacrebleu-sentence", "sacreBLEU", "BLEU of a sentence, all smoothings", f"{SACREBLEU}test_sentence_bleu.py"),
    Suite("sacrebleu-chrf", "sacreBLEU", "chrF", f"{SACREBLEU}test_chrf.py"),
    Suite("sacrebleu-chrf++", "sacreBLEU", "chrF++ (word order 2)", "sacrebleu's corpus_chrf, called by the test"),
    Suite("sacrebleu-ter", "sacreBLEU", "TER", f"{SACREBLEU}test_ter.py"),
    Suite("sacrebleu-randomisation", "multeval", "p-values of approximate randomisation, 15 systems of WMT17",
          f"{SACREBLEU}test_significance.py"),
    Suite("sacrebleu-bootstrap", "Moses", "p-values of paired bootstrap, 15 systems of WMT17",
          f"{SACREBLEU}test_significance.py"),
    Suite("joeynmt-metrics", "JoeyNMT", "BLEU and chrF", f"{JOEYNMT}test_metric.py"),
    Suite("sockeye-metrics", "Sockeye", "BLEU and chrF", f"{SOCKEYE}test_bleu.py, test_chrf.py"),
    Suite("t2t-bleu", "tensor2tensor", "BLEU", f"{T2T}utils/bleu_hook_test.py"),
    Suite("evalb-sample", "EVALB", "brackets of its sample, damaged trees among them",
          f"{GITHUB}nikitakit/self-attentive-parser EVALB/sample/"),
    Suite("evalb-damaged", "EVALB", "brackets of 60 generated trees against damaged ones, by its C program",
          f"{GITHUB}nikitakit/self-attentive-parser EVALB/evalb.c, COLLINS.prm; recorded"),
    Suite("evalb-program", "EVALB", "the same of any trees, by the program itself",
          "an EVALB of your own: EVALB=path; trees: DATA=folder with craft/dev.clean.trees"),
    Suite("t2t-trees", "tensor2tensor", "linearisation of 60 generated trees",
          f"{T2T}data_generators/wsj_parsing.py; recorded"),
    Suite("fairseq-beam", "fairseq", "beam search: hypotheses with scores", f"{FAIRSEQ}test_sequence_generator.py"),
    Suite("fairseq-scorer", "fairseq", "probabilities of given translations", f"{FAIRSEQ}test_sequence_scorer.py"),
    Suite("fairseq-average", "fairseq", "the mean of two checkpoints", f"{FAIRSEQ}test_average_checkpoints.py"),
    Suite("fairseq-ngrams", "fairseq", "blocking of repeated n-grams", f"{FAIRSEQ}test_sequence_generator.py"),
    Suite("t2t-beam", "tensor2tensor", "beam search: hypotheses with scores", f"{T2T}utils/beam_search_test.py"),
    Suite("torch-transformer", "PyTorch", "torch.nn.Transformer: outputs and gradients, post- and pre-norm, ReLU and "
          "GELU, in training and evaluation", "torch, called by the test"),
    Suite("annotated-rate", "Annotated Transformer", "learning rates", f"{ANNOTATED} rate()"),
    Suite("annotated-model", "Annotated Transformer", "the model with the same weights", ANNOTATED),
    Suite("rates", "OpenNMT, Sockeye", "learning rates", f"{GITHUB}OpenNMT/OpenNMT-py onmt/utils/optimizers.py; "
          f"{SOCKEYE}test_lr_scheduler.py"),
    Suite("smoothing", "PyTorch, tensor2tensor, fairseq, Annotated Transformer, JoeyNMT",
          "label smoothing of one example", f"their definitions; {FAIRSEQ}test_label_smoothing.py; "
          f"{JOEYNMT}test_loss.py"),
    Suite("length-penalties", "GNMT, OpenNMT, Sockeye, Hugging Face", "length penalties",
          f"https://arxiv.org/abs/1609.08144; {GITHUB}OpenNMT/OpenNMT-py onmt/translate/penalties.py; "
          f"{SOCKEYE}test_beam_search.py"),
    Suite("sentencepiece-like", "SentencePiece", "models made like its own old test models: no score fields, a map of "
          "another Unicode", "sentencepiece, called by the test"),
    Suite("sentencepiece-own", "SentencePiece", "its own test models: pieces of each line of its text",
          f"{GITHUB}google/sentencepiece python/test/, from the source package on PyPI"),
    Suite("huggingface-ours", "transformers", "our export, read there", "transformers, called by the test"),
    Suite("huggingface-theirs", "transformers", "a Marian model made there, imported",
          "transformers, called by the test"),
    Suite("huggingface-orders", "transformers", "what generation_config.json orders is done, or refused by its name",
          "transformers, called by the test"),
    Suite("huggingface-processors", "transformers", "what its processors forbid",
          f"{GITHUB}huggingface/transformers tests/generation/test_logits_process.py"),
    Suite("ctranslate2-ours", "CTranslate2", "our export, read there", "ctranslate2, called by the test"),
    Suite("ctranslate2-theirs", "CTranslate2", "a model of its own converter, imported",
          "ctranslate2, called by the test"),
    Suite("onnxruntime", "ONNX Runtime", "our export, read there", "onnxruntime, called by the test"),
    Suite("paper-table-3", "the paper", "parameters of each model of Table 3, in millions", f"{PAPER}, Table 3"),
]  # fmt: skip
