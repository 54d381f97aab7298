"""Small files that are right, one of each text format."""

CONLLU = """\
# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tbark\tbark\tVERB\tVB\tMood=Imp\t0\troot\t_\t_
3.1\tx\t_\t_\t_\t_\t_\t_\t_\t_
4\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t3\tvocative\t_\tSpaceAfter=No

1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_

"""
TREES = """\
( (S (NP-SBJ-1 (DT the) (NN dog)) (VP (VBZ barks) (-NONE- *))) )
(TOP (S (NP (NNS cats)) (VP (VBP meow)) (. .)))
"""
PHRASES = """\
der hund ||| the dog ||| 0.5 0.4 0.3 0.2 ||| 0-0 ||| 1 1
der ||| the ||| 1 1 1 1
hund ||| dog ||| 0.1 0 1e-3 1
"""
RULES = """\
[X] ||| der [X,1] ||| the [1] ||| p=0.5 w=-1
[X] ||| hund ||| dog ||| p=1.5 w=-1
[X] ||| [X,1] und [X,2] ||| [X,2] and [1] ||| p=0.25 w=-1
[S] ||| [X,1] ||| [1] ||| g=1
[S] ||| [S,1] [X,2] ||| [1] [2] ||| g=1
"""
ARPA = """\
\\data\\
ngram 1=5
ngram 2=4
ngram 3=1

\\1-grams:
-1.0\t<unk>
0\t<s>\t-0.5
-0.5\t</s>
-0.4\tdog\t-0.2
-0.7\tthe\t-0.1

\\2-grams:
-0.3\t<s> the\t-0.1
-0.1\tdog </s>
-0.2\tthe dog\t-0.3
-0.9\t<s> dog

\\3-grams:
-0.05\t<s> the dog

\\end\\
"""
FOREST = """\
3 4
2
the dog ||| p=0.5
dog ||| p=0.25 q=1
1
barks ||| p=1
1
[0] loudly [1] ||| g=1
"""
GRAPH = """\
certus hypergraph 1
vertices 3 edges 4 root 2
vertex 0 "the"
vertex 1 "dog"
vertex 2 "NP"
0 <- weight=0.0 label="a"
1 <- weight=-inf label="b"
1 <- weight=1e3 label="\\u00e9"
2 <- 0 1 weight=1.5 label="NP -> the dog"
"""
GRAMMAR = """\
# rules
1    S -> NP VP
0.5  NP -> D N
-1   NP -> N
0    VP -> V NP PP
2    VP -> V
1    PP -> "\\"x\\""
1    D -> "the"
1    D -> "a"
0.5  N -> "dog"
1    N -> "cat"
0    V -> "Sees"
1    V -> <unknown>
"""
HEADS = "conjunctions CC\npunctuation , .\nNP right NN|NNS NP\nVP left VB|VBZ VP\n* left\n"
CLUSTERS = "00\tdog\t10\n01\tcat\t5\n1\tthe\t100\n"
WEIGHTS = "p 0.5\nw=0.25\n# comment\ng -1\nLM 0.5\n"
