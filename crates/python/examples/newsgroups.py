"""The accuracy of a classifier of topics on 20 newsgroups: `python newsgroups.py DATA` (see docs/data.md)."""

import sys

import latens
import pandas
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

news = pandas.read_csv(f"{sys.argv[1]}/20news/20news.tsv", sep="\t", names=["group", "split", "text"], quoting=3).dropna()
counts = CountVectorizer(stop_words="english", min_df=5, token_pattern=r"\b[a-zA-Z]{3,}\b")
pipeline = make_pipeline(counts, latens.Lda(100, random_state=1), LogisticRegression(C=100, max_iter=3000))
scores = cross_val_score(pipeline, news["text"], news["group"], cv=3)
print(f"accuracy {scores.mean():.3f} ({scores.min():.3f}–{scores.max():.3f}) on {len(news):,} documents")
