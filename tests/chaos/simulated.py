"""Simulated producers: real recorders in cheap processes that take steps without training."""

import time
from contextlib import ExitStack
from random import Random

from chaos.world import VICTIMS, World
from training_process import TrainingProcess

RUN = "llama-7"
_RANKS = 3


def simulate(world: World, kills: int, chance: Random) -> None:
    """Take steps and kill one of the three at random moments; then end the run and drain."""
    with ExitStack() as stack:

        def start(rank: int) -> TrainingProcess:
            process = TrainingProcess(world.spool, rank=rank, world_size=_RANKS)
            stack.callback(process.kill)
            world.link()
            return process

        ranks = [start(rank) for rank in range(_RANKS)]
        for victim in chance.choices(VICTIMS, k=kills):
            for rank in ranks:
                rank.begin_steps(chance.randint(1, 600))
            time.sleep(chance.uniform(0, 0.1))
            struck = chance.randrange(_RANKS)
            if victim == "rank":
                ranks[struck].kill()
                world.counts.kills["rank"] += 1
            elif victim == "agent":
                world.kill_agent()
            else:
                world.kill_collector()
            for number, rank in enumerate(ranks):
                if victim != "rank" or number != struck:
                    rank.finish()
            if victim == "rank":
                ranks[struck] = start(struck)
        for rank in ranks:
            rank.end()
        for rank in ranks:
            rank.exit()
        world.drain()
