"""How good translations are: BLEU, chrF and TER as sacreBLEU counts them."""
