"""The design's first worked example: 754 s on 4 GPUs, a killed rank that cost 154 s of them."""

UNALLOCATED = """
0        attempt A launcher world=4 rank=0..3
0-574    steps 1-574 rank=0..3
500      scheduled c500 rank=0..3
500      finalized c500
574      exit rank=3 signal=9
634      launcher stop_workers
640      exit rank=0..2 signal=15 by=launcher
642      attempt B launcher world=4 rank=0..3
646-654  phase checkpoint_load rank=0..3
654      resumed 500 from=c500 rank=0..3
654-754  steps 501-600 rank=0..3
"""
"""As told by somebody who said nothing of how many GPUs it held."""
KILLED = f"\n0        allocation 4{UNALLOCATED}"
