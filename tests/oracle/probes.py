"""The probes of goodput measurement as event streams with their expected ledgers.

Each is a small timeline on which existing libraries go wrong; they carry step starts and ends,
attempt starts and exit records, and no `resumed`. Steps take 10 s unless said otherwise.
"""

from collections.abc import Callable, Mapping

from headway.events import Clock, Envelope, Fault, Heartbeat, RankExited, StopAnnounced
from oracle.scenario import SECOND, Scenario

Probe = tuple[list[Envelope], int, Mapping[str, int]]

RESTARTS: Mapping[str, tuple[int, int]] = {
    "01": (1, 0),
    "02": (1, 0),
    "03": (1, 0),
    "04": (2, 0),
    "05": (11, 10),
    "05 without exits": (11, 10),
    "06": (11, 0),
    "08": (1, 0),
    "09": (1, 0),
    "13a": (1, 0),
    "13b": (1, 0),
    "15": (0, 0),
    "18": (0, 0),
}
"""Restarts and failed starts where a probe is about them."""


def probes() -> dict[str, Probe]:
    """Return every probe by its number: envelopes, as_of, and nanoseconds per category."""
    return {name: build() for name, build in _BUILDERS.items()}


def _probe(scenario: Scenario, as_of: float, **seconds: int) -> Probe:
    expected = {name.replace("__", ":"): value * SECOND for name, value in seconds.items()}
    return scenario.envelopes(), scenario.absolute(as_of), expected


def _crash() -> Probe:
    # 15 steps 0-150, 5 lost; down 150-250; process 250-260; steps 11-20 260-360.
    # productive (10 + 10) * 10 = 200, rolled_back 5 * 10 = 50, down 100, restart 10: 360.
    run = Scenario("p01-1")
    run.start("a", 0)
    run.exit("a", run.steps("a", 1, 15, 0, 10), code=1, by="itself")
    run.start("b", 250)
    run.exit("b", run.steps("b", 11, 10, 260, 10), code=0, by="itself")
    run.end(360)
    return _probe(run, 360, productive=200, rolled_back=50, down=100, restart=10)


def _preempted() -> Probe:
    # Steps 1-10 0-100, notice and exit at 100; down 100-3700; process 3700-3730; 11-20 to 3830.
    # productive 20 * 10 = 200, down 3600, restart 30: 3830.
    run = Scenario("p02-1")
    run.start("a", 0)
    run.steps("a", 1, 10, 0, 10)
    run.event(100, StopAnnounced(reason="preemption"), "a", 0)
    run.exit("a", 100, signal=15, by="scheduler")
    run.start("b", 3700)
    run.exit("b", run.steps("b", 11, 10, 3730, 10), code=0, by="itself")
    run.end(3830)
    return _probe(run, 3830, productive=200, down=3600, restart=30)


def _from_zero() -> Probe:
    # Steps 1-50 0-500, all lost; down 500-560; steps 1-20 560-760.
    # productive 20 * 10 = 200, rolled_back 50 * 10 = 500, down 60: 760.
    run = Scenario("p03-1")
    run.start("a", 0)
    run.exit("a", run.steps("a", 1, 50, 0, 10), code=1, by="itself")
    run.start("b", 560)
    run.exit("b", run.steps("b", 1, 20, 560, 10), code=0, by="itself")
    run.end(760)
    return _probe(run, 760, productive=200, rolled_back=500, down=60)


def _deeper() -> Probe:
    # a: 1-50 0-500; down 60; b: 41-50 560-660; down 60; c: 31-100 720-1420, below b's start.
    # productive 30 + 70 = 100 steps = 1000, rolled_back a 31-50 and b 41-50 = 300, down 120: 1420.
    run = Scenario("p04-1")
    run.start("a", 0)
    run.exit("a", run.steps("a", 1, 50, 0, 10), code=1, by="itself")
    run.start("b", 560)
    run.exit("b", run.steps("b", 41, 10, 560, 10), code=1, by="itself")
    run.start("c", 720)
    run.exit("c", run.steps("c", 31, 70, 720, 10), code=0, by="itself")
    run.end(1420)
    return _probe(run, 1420, productive=1000, rolled_back=300, down=120)


def _failed_starts(with_exits: bool) -> Scenario:
    # Process 0-20, steps 1-25 20-270; 10 times (down 30, start 40) 270-970; down 970-1000;
    # process 1000-1020; steps 21-50 1020-1320.
    run = Scenario("p05-1")
    run.start("a", 0)
    run.exit("a", run.steps("a", 1, 25, 20, 10), code=1, by="itself")
    for number in range(10):
        run.start(f"f{number}", 300 + 70 * number)
        if with_exits:
            run.exit(f"f{number}", 340 + 70 * number, code=1, by="itself")
    run.start("b", 1000)
    run.exit("b", run.steps("b", 21, 30, 1020, 10), code=0, by="itself")
    run.end(1320)
    return run


def _init_loop() -> Probe:
    # productive (20 + 30) * 10 = 500, rolled_back 5 * 10 = 50, startup 20,
    # restart 10 * 40 + 20 = 420, down 11 * 30 = 330: 1320.
    run = _failed_starts(with_exits=True)
    return _probe(run, 1320, productive=500, rolled_back=50, startup=20, restart=420, down=330)


def _init_loop_without_exits() -> Probe:
    # Nothing shows how long the failed starts lived, so their 10 * 40 s are down:
    # productive 500, rolled_back 50, startup 20, restart 20, down 330 + 400 = 730: 1320.
    run = _failed_starts(with_exits=False)
    return _probe(run, 1320, productive=500, rolled_back=50, startup=20, restart=20, down=730)


def _slow_step_loop() -> Probe:
    # 1-5 0-50, step 6 takes 110, crash; 10 attempts do step 6 and crash; the last does 6 and 7-20.
    # Fewer than 5 earlier steps or a first step: no limit, so no 110 s step is stalled.
    # productive 50 + 110 + 140 = 300, rolled_back 11 * 110 = 1210, down 11 * 20 = 220: 1730.
    run = Scenario("p06-1")
    run.start("a0", 0)
    run.steps("a0", 1, 5, 0, 10)
    now = run.steps("a0", 6, 1, 50, 110)
    run.exit("a0", now, code=1, by="itself")
    for number in range(1, 12):
        now += 20
        run.start(f"a{number}", now)
        now = run.steps(f"a{number}", 6, 1, now, 110)
        if number < 11:
            run.exit(f"a{number}", now, code=1, by="itself")
    now = run.steps("a11", 7, 14, now, 10)
    run.exit("a11", now, code=0, by="itself")
    run.end(now)
    return _probe(run, now, productive=300, rolled_back=1210, down=220)


def _every_tenth() -> Probe:
    # 100 steps in 10 ranges of 10 steps and 100 s each: productive 10 * 100 = 1000.
    run = Scenario("p07-1")
    run.start("a", 0)
    for number in range(10):
        run.summary("a", 1 + 10 * number, 10, 100 * number, 100 * number + 100)
    run.exit("a", 1000, code=0, by="itself")
    run.end(1000)
    return _probe(run, 1000, productive=1000)


def _starts_only() -> Probe:
    # Starts at 0, 100, ..., 900 give 9 ranges; nothing is known of the last 100 s, which are at
    # the limit of 10 * 10 s and not over it: productive 900, unattributed 100: 1000.
    run = Scenario("p07b-1")
    run.start("a", 0)
    for number in range(9):
        run.summary("a", 1 + 10 * number, 10, 100 * number, 100 * number + 100)
    return _probe(run, 1000, productive=900, unattributed=100)


def _ended_by_handler() -> Probe:
    # Steps 1-20 0-200, SIGTERM and exit at 200; down 200-300; steps 19-30 300-420, and on.
    # As of 420: productive 18 + 12 = 30 steps = 300, rolled_back 2 * 10 = 20, down 100: 420.
    run = Scenario("p08-1")
    run.start("a", 0)
    run.steps("a", 1, 20, 0, 10)
    run.event(200, StopAnnounced(reason="sigterm"), "a", 0)
    run.exit("a", 200, signal=15, by="scheduler")
    run.start("b", 300)
    for number in range(19, 40):
        run.steps("b", number, 1, 300 + 10 * (number - 19), 10)
    return _probe(run, 420, productive=300, rolled_back=20, down=100)


def _saves_rolled_back() -> Probe:
    # 10 times (10 steps, save 20 s) 0-1200; down 1200-1260; steps 6-15 1260-1360.
    # productive (5 + 10) * 10 = 150, rolled_back 95 * 10 = 950, checkpoint_save 200, down 60: 1360.
    run = Scenario("p09-1")
    run.start("a", 0)
    now: float = 0
    for number in range(10):
        now = run.steps("a", 1 + 10 * number, 10, now, 10)
        run.phase("a", "checkpoint_save", now, now + 20)
        now += 20
    run.exit("a", now, code=1, by="itself")
    run.start("b", 1260)
    run.exit("b", run.steps("b", 6, 10, 1260, 10), code=0, by="itself")
    run.end(1360)
    return _probe(run, 1360, productive=150, rolled_back=950, checkpoint_save=200, down=60)


def _nested_load() -> Probe:
    # startup 0-100 holds checkpoint_load 10-90; steps 1-5 100-150.
    # productive 50, checkpoint_load 80, startup 100 - 80 = 20: 150.
    run = Scenario("p10-1")
    run.start("a", 0)
    run.phase("a", "startup", 0, 100)
    run.phase("a", "checkpoint_load", 10, 90)
    run.exit("a", run.steps("a", 1, 5, 100, 10), code=0, by="itself")
    run.end(150)
    return _probe(run, 150, productive=50, checkpoint_load=80, startup=20)


def _waiting_for_data() -> Probe:
    # 40 times (wait 20, step 5): productive 40 * 5 = 200, data_wait 40 * 20 = 800: 1000.
    run = Scenario("p11-1")
    run.start("a", 0)
    run.exit("a", run.steps("a", 1, 40, 0, 5, data_wait=20), code=0, by="itself")
    run.end(1000)
    return _probe(run, 1000, productive=200, data_wait=800)


def _hang(run: Scenario) -> Probe:
    # Steps 1-9 0-90, then nothing until 3690; 4 steps lost; steps 6-20 3690-3840.
    # productive (5 + 15) * 10 = 200, rolled_back 4 * 10 = 40, stalled 3600: 3840.
    run.start("a", 0)
    run.steps("a", 1, 9, 0, 10)
    run.start("b", 3690)
    run.exit("b", run.steps("b", 6, 15, 3690, 10), code=0, by="itself")
    run.end(3840)
    return _probe(run, 3840, productive=200, rolled_back=40, stalled=3600)


def _killed_hang() -> Probe:
    # The exit at 3690 is the launcher's, so the fault starts at the last step's end, 90.
    run = Scenario("p12-1")
    run.exit("a", 3690, signal=9, by="launcher")
    return _hang(run)


def _watchdog_hang() -> Probe:
    # The watchdog fired at 3690 after 3600 s: the fault starts at 90.
    run = Scenario("p12-2")
    run.event(3690, Fault(kind="heartbeat_timeout", ran_for=3600 * SECOND), "a", 0)
    run.exit("a", 3690, signal=9, by="launcher")
    return _hang(run)


def _open_step_hang() -> Probe:
    # Heartbeats show the step that never ended; it was cut short over its limit of 100 s.
    run = Scenario("p12-3")
    for at in range(120, 3690, 60):
        run.event(at, Heartbeat(open_phases=("step",), last_step=9), "a", 0)
    exited = RankExited(signal=9, by="person")
    run.event(3690, exited, "a", 0, producer="agent n0")
    return _hang(run)


def _behind(seconds: int) -> Probe:
    # a on n0: 1-370 0-3700; down 120; b on n1, whose clock is behind and measured: 361-720.
    # productive 360 + 360 = 720 steps = 7200, rolled_back 10 * 10 = 100, down 120: 7420.
    run = Scenario("p13-1")
    run.behind["n1"] = seconds * SECOND
    run.start("a", 0)
    run.exit("a", run.steps("a", 1, 370, 0, 10), code=1, by="itself")
    run.event(3800, Clock(offset=seconds * SECOND, error=1_000_000), node="n1")
    run.start("b", 3820, ranks=(2,))
    now = run.steps("b", 361, 360, 3820, 10, rank=2)
    run.exit("b", now, ranks=(2,), code=0, by="itself")
    run.end(now)
    return _probe(run, now, productive=7200, rolled_back=100, down=120)


def _evaluation_across_steps() -> Probe:
    # 1-4 0-40, step 5 40-65, step 6 65-88, 7-10 88-128; custom 50-80 lies in steps 5 and 6.
    # custom 30, productive 40 + (25 - 15) + (23 - 15) + 40 = 98: 128.
    run = Scenario("p14-1")
    run.start("a", 0)
    run.steps("a", 1, 4, 0, 10)
    run.steps("a", 5, 1, 40, 25)
    run.steps("a", 6, 1, 65, 23)
    run.phase("a", "custom:evaluation", 50, 80)
    run.exit("a", run.steps("a", 7, 4, 88, 10), code=0, by="itself")
    run.end(128)
    return _probe(run, 128, productive=98, custom__evaluation=30)


def _plain(run_id: str, steps: int) -> Scenario:
    run = Scenario(run_id)
    run.start("a", 0)
    now: float = 0
    for number in range(steps):
        now = run.steps("a", 1 + number, 1, now, 10)
    run.exit("a", now, code=0, by="itself")
    run.end(now)
    return run


def _monitor_restarted() -> Probe:
    # 100 steps, whoever watches them: productive 100 * 10 = 1000.
    return _probe(_plain("p15-1", 100), 1000, productive=1000)


def _same_name() -> Probe:
    # The same name next day has its own run id, so its 10 steps stand alone: productive 100.
    return _probe(_plain("p15-2", 10), 100, productive=100)


def _late() -> Probe:
    # 20 steps of which five records arrive last: productive 20 * 10 = 200.
    envelopes, as_of, expected = _probe(_plain("p17-1", 20), 200, productive=200)
    return envelopes[:6] + envelopes[11:] + envelopes[6:11], as_of, expected


def _twice() -> Probe:
    # 20 steps of which one record arrives twice: productive 20 * 10 = 200 and no restart.
    envelopes, as_of, expected = _probe(_plain("p18-1", 20), 200, productive=200)
    return [*envelopes, envelopes[9]], as_of, expected


_BUILDERS: Mapping[str, Callable[[], Probe]] = {
    "01": _crash,
    "02": _preempted,
    "03": _from_zero,
    "04": _deeper,
    "05": _init_loop,
    "05 without exits": _init_loop_without_exits,
    "06": _slow_step_loop,
    "07": _every_tenth,
    "07 starts only": _starts_only,
    "08": _ended_by_handler,
    "09": _saves_rolled_back,
    "10": _nested_load,
    "11": _waiting_for_data,
    "12 killed": _killed_hang,
    "12 watchdog": _watchdog_hang,
    "12 heartbeats": _open_step_hang,
    "13a": lambda: _behind(60),
    "13b": lambda: _behind(600),
    "14": _evaluation_across_steps,
    "15": _monitor_restarted,
    "16": _same_name,
    "17": _late,
    "18": _twice,
}
