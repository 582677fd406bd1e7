"""From two text files to batches of token ids; nothing here knows a model.

    corpus.py      read, check and clean parallel text
    tokenizer.py   SentencePiece: learn, encode (sampled too), decode
    store.py       ids and offsets on disk, read pair by pair
    order.py       length buckets, token budget, resumable order
    batching.py    Batch, BatchStream
    phrasebook/    the embedded corpus

Data flows down that list:

    read_pairs -> learn_tokenizers            first pass over the text
    read_pairs -> build_store -> Store        second pass: encode, clean, write
    Store -> BatchStream -> Batch             as often as training likes
"""
