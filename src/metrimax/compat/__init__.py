"""For users of SVM-perf: its two commands, and the class that QuaPy expects."""
