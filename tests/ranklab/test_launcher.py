"""Launchers of ranks: what they make of ends that are told late or twice."""

from ranklab.engines.launcher import RankSetLauncher


class Told:
    """Stands for the launcher of a rank; its end is told when the test says so."""

    def __init__(self, **traits):
        self.traits, self.callbacks = traits, []

    def on_stop(self, callback):
        self.callbacks.append(callback)

    def start(self):
        return self

    def get_output(self):
        return ""

    def tell(self):
        for callback in self.callbacks:
            callback({"exit_code": -9, "identifier": self.traits["identifier"]})


class ToldSet(RankSetLauncher):
    launcher_class = Told


def test_an_end_that_is_told_late_or_twice_does_not_lose_the_rank_in_its_place(tmp_path):
    ranks = ToldSet(profile_dir=str(tmp_path), environments=[{}, {}])
    ranks.start(2)
    before = ranks.ranks[0]
    now = ranks.start_rank(0)
    before.tell()
    assert ranks.launchers == {"0": now, "1": ranks.ranks[1]}
    now.tell()
    now.tell()
    assert ranks.launchers == {"1": ranks.ranks[1]}
