"""Models for one stream, with the words of river (online.py, river.py) and of scikit-learn (sklearn.py)."""
