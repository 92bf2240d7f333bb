"""Generate sentences under constraints: with a hidden Markov model alone, and with an n-gram model that it guides.

    python crates/python/examples/generate.py
"""

import numpy as np

import latens
from latens import constraint

texts = latens.datasets.sentences()
hmm = latens.Hmm(64, n_clusters=8, dim=32, epochs=3, lowercase=True, min_count=2).fit(texts)
ngram = latens.Ngram(order=3, lowercase=True, min_count=2).fit(texts)

c = constraint.contains("of the", ["man", "house"]) & constraint.excludes("and")
print("log-probability under the guide:", hmm.constraint_log_prob(c, max_words=15))
for text in hmm.generate(c, n=2, max_words=15):
    print("exact sample:", text)
for text in ngram.generate(c, guide=hmm, n=2, max_words=15):
    print("guided n-gram model:", text)
for text in ngram.generate(c, guide=hmm, n=2, max_words=15, beam=8):
    print("beam search:", text)

# The same step by step, with arrays: the log-probabilities of any model of these words, here a uniform one.
guide = constraint.Guide(hmm, c, max_words=15)
ids: list[int] = []
while True:
    steered = guide.steer(np.zeros(len(hmm.words_)), ids)
    word = int(steered.argmax())
    if hmm.words_[word] == "<eos>":
        break
    ids.append(word)
print("uniform model:", " ".join(hmm.words_[word] for word in ids))
