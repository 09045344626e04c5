"""A run that leads nowhere: three attempts in a row break on one bad sample, as a timeline."""

CHAIN = """
0      attempt A launcher world=1
0-50   steps 1-50
50     scheduled c50
52     finalized c50
60     exit signal=9
70     attempt B launcher world=1
72     resumed 50 from=c50
72-75  steps 51-53
75     fault exception exception=ValueError message="bad sample 17"
76     exit code=1
80     attempt C launcher world=1
82     resumed 50 from=c50
82-85  steps 51-53
85     fault exception exception=ValueError message="bad sample 18"
86     exit code=1
90     attempt D launcher world=1
92     resumed 50 from=c50
92-95  steps 51-53
95     fault exception exception=ValueError message="bad sample 19"
96     exit code=1
"""
