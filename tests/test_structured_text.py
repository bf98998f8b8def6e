"""Trees and chunks as the structured experiments read and judge them."""

from __future__ import annotations

import lzma

import pytest

from experiments.structured_text import (
    affixes,
    bracket_scores,
    chunk_scores,
    leaves,
    over_tags,
    read_tree,
    span_features,
    tagged,
    treebank,
    windows,
)
from metrimax.structured import binarise

SENTENCE = "((S (NP-SBJ-1 (NNP Ms.) (NNP Haag)) (VP (VBZ plays) (S (NP (-NONE- *-1)) (NP (NNP Elianti)))) (. .)))"


def test_trees_without_traces_and_function_tags():
    tree = read_tree(SENTENCE)
    subject = ("NP", ("NNP", "Ms."), ("NNP", "Haag"))
    assert tree == (
        "TOP",
        ("S", subject, ("VP", ("VBZ", "plays"), ("S", ("NP", ("NNP", "Elianti")))), (".", ".")),
    )
    assert leaves(over_tags(tree)) == ["NNP", "NNP", "VBZ", "NNP", "."]
    assert read_tree("((S (NP (-NONE- *))))") is None
    assert read_tree("((S (-LRB- -LCB-) (NN x)))")[1][1][0] == "-LRB-"


def test_brackets_count_phrases_of_one_word_and_missing_parses():
    tree = binarise(over_tags(read_tree(SENTENCE)))  # S, NP, VP, S, NP
    flat = binarise(("TOP", ("S", *over_tags(read_tree(SENTENCE))[1][1:3], (".", "."))))
    assert bracket_scores([tree], [tree]) == (1.0, 1.0)
    assert bracket_scores([tree, tree], [flat, None])[0] == pytest.approx(2 * 5 / 15)
    other = binarise(("TOP", ("S", ("NNP", "NNP"), ("NNP", "NNP"), ("VBZ", "VBZ"), ("NNP", "NNP"), (".", "."))))
    assert bracket_scores([tree], [other]) == (pytest.approx(2 / 6), 0.0)


def test_chunks_begin_with_b_or_another_type():
    y = [["B-NP", "I-NP", "O", "B-VP", "B-NP"]]
    assert chunk_scores(y, y) == (1.0, 1.0)
    assert chunk_scores(y, [["I-NP", "I-NP", "O", "I-VP", "I-NP"]]) == (1.0, 0.4)  # the same chunks
    assert chunk_scores(y, [["B-NP", "B-NP", "O", "B-VP", "O"]]) == (pytest.approx(2 / 6), 0.6)


def test_files(tmp_path):
    for name, text in {
        "treebank_sample/wsj_sample.trees.xz": f"wsj_1\t{SENTENCE}\nwsj_1\t((S (NN a) (VB b)))\n",
        "conll2000/train.txt.xz": "He PRP B-NP\nran VBD B-VP\n\nGo VB B-VP\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with lzma.open(tmp_path / name, "wt") as file:
            file.write(text)
    assert [len(leaves(tree)) for tree in treebank(tmp_path, 10)] == [5, 2]
    assert len(treebank(tmp_path, 4)) == 1
    words, tags, chunks = tagged(tmp_path, "train")
    assert (words, tags, chunks) == ([["He", "ran"], ["Go"]], [["PRP", "VBD"], ["VB"]], [["B-NP", "B-VP"], ["B-VP"]])


def test_features():
    first, last = affixes(["Go", "on"])
    assert (first["prefix"], last["suffix"], first["capital"], first["capitals"]) == (
        ["G", "Go"],
        ["n", "on"],
        True,
        False,
    )
    assert (first["before"], first["after"], last["before"], last["after"]) == ("<", "on", "go", ">")
    first, last = windows([("He", "PRP"), ("ran", "VBD")])
    assert (first["word 1"], first["word 2"], first["tag -1"]) == ("ran", ">", "<")
    assert (last["words -1"], last["words 0"]) == ("he ran", "ran >")
    assert (last["tags -1 2"], last["tags -2 3"], last["tags 0 3"]) == ("PRP VBD", "< PRP VBD", "VBD > >")
    assert span_features(["DT", "NN", "VB"], 0, 2) == ["first DT", "last NN", "before <", "after VB", "length 2"]
