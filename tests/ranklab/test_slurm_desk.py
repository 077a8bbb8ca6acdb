"""A Slurm on the hosts of a lab: jobs run as root and as an ordinary user, and nothing is left of it."""

import os
import signal
import sys
import textwrap
import uuid
from pathlib import Path

import pytest
from batch_files import by_c10d, one_srun_per_node, right
from hosting import left, machine, marked, program, spaces, why_not
from support import eventually

import ranklab
from ranklab.errors import RanklabError, WorldError
from ranklab.lab.slurm import NEEDED, Slurm
from ranklab.programs import lacking

SCRIPTS = Path(__file__).parents[2] / "book" / "launching" / "scripts"
slurm_here = pytest.mark.usefixtures("possible")
NODES = [2, 1, 3]
DESK = """
    import time
    import ranklab
    from ranklab.lab.slurm import Slurm
    lab = ranklab.hosts(3)
    slurm = Slurm(lab, {scripts!r})
    {first}
    job = slurm.sbatch("#!/bin/bash\\nsrun sleep 600\\n").wait(state="RUNNING")
    print(repr(job), flush=True)
    {then}
"""
# On a busy machine torchrun may print besides that the store's host has left before it.
TRAIN = """
    job = slurm.sbatch("train.sbatch", "anywhere.py").wait()
    print([line for line in job.lines if " by torchrun " in line], flush=True)
"""
# One write per line: ranks that share an output would mix their lines otherwise.
WHERE = """
import os

names = "RANK", "GROUP_RANK", "LOCAL_WORLD_SIZE"
os.write(1, f"told {' '.join(os.environ[name] for name in names)}\\n".encode())
"""
# A notebook on the login node, with the cluster's ranks.
ENGINES = """
    import sys
    import ranklab
    sys.path.append({tests!r})
    from elsewhere import asked
    template = "#!/bin/bash\\n#SBATCH --ntasks={{n}} --ntasks-per-node=1\\nsrun {{program_and_args}}\\n"
    world = ranklab.start(3, engines="slurm", address={address!r}, options={{"batch_template": template}})
    print(world.nodes, world.backend)
    print(world._call(lambda: __import__("socket").gethostname(), timeout=300)[0])
    asked(world, "SLURM_PROCID")
"""


@pytest.fixture(scope="module")
def possible():
    """Skip where no Slurm can be started."""
    if lack := why_not() or ", ".join(each.name for each in lacking() if each.name in NEEDED):
        pytest.skip(lack)


@pytest.fixture(scope="module")
def desk(possible):
    """A Slurm with three nodes."""
    with ranklab.hosts(len(NODES) + 1) as lab:
        yield Slurm(lab, SCRIPTS)


def run_desk(folder, user, first, then, mark=""):
    text = textwrap.dedent(DESK).format(scripts=str(SCRIPTS), first=textwrap.dedent(first), then=then)
    return program(text, mark, folder, user)


@slurm_here
def test_the_batch_file_of_the_book_runs_for_root_and_for_an_ordinary_user(user, folder):
    before = machine()
    with run_desk(folder, user, TRAIN, "lab.stop()") as child:
        said = child.stdout.read().splitlines()
        assert child.wait(300) == 0
    tasks = [f"{rank // 2}: rank {rank} of 4 by torchrun on computer{rank // 2 + 1}: sum 6" for rank in range(4)]
    assert said == [repr(tasks), "job 2: RUNNING"]
    assert list(folder.iterdir()) == []
    assert machine() == before


@slurm_here
def test_nothing_is_left_when_the_owner_is_killed(user, folder):
    before, mark = machine(), uuid.uuid4().hex
    with run_desk(folder, user, "", "time.sleep(600)", mark) as child:
        assert child.stdout.readline() == "job 1: RUNNING\n"
        with spaces(marked(mark)) as ours:
            child.send_signal(signal.SIGKILL)
            child.wait(300)
            assert left(mark, ours, folder) == []
    assert machine() == before


@slurm_here
@pytest.mark.parametrize("answer", [right, one_srun_per_node, by_c10d])
def test_what_the_grader_accepts_starts_uneven_nodes(desk, answer):
    (desk.folder / "train.py").write_text(WHERE)
    job = desk.sbatch(answer(NODES)).wait()
    told = [line.split()[1:] for line in job.lines if line.startswith("told")]
    assert sorted(rank for rank, _, _ in told) == [str(rank) for rank in range(sum(NODES))], job.output
    sizes = [[str(node), str(size)] for node, size in enumerate(NODES) for _ in range(size)]
    assert sorted(place for _, *place in told) == sizes


@slurm_here
def test_ranks_of_a_notebook_on_the_login_node(desk):
    program = ENGINES.format(tests=str(Path(__file__).parents[1]), address=desk.login.address)
    (desk.folder / "login.py").write_text(textwrap.dedent(program))
    said = desk.run(f"{sys.executable} login.py")
    assert said.splitlines()[-2:] == ["(1, 1, 1) gloo", "['computer1', 'computer2', 'computer3']"]


@slurm_here
def test_what_went_wrong_is_told(desk):
    with pytest.raises(RanklabError, match=r"`false` failed with exit status 1\."):
        desk.run("false")
    with pytest.raises(RanklabError, match=r"was not finished after 0\.5 s"):
        desk.run("echo begun; sleep 60", timeout=0.5)
    with pytest.raises(RanklabError, match="unrecognized option '--wrong'"):
        desk.sbatch("#!/bin/bash\n#SBATCH --wrong\n")
    with pytest.raises(RanklabError, match=r"is not over after 1 s: it is RUNNING\. It printed:\nbegun"):
        desk.sbatch("#!/bin/bash\necho begun; sleep 600\n").wait(text="begun").wait(timeout=1)
    assert eventually(lambda: desk.run("squeue --noheader") == "")


@slurm_here
def test_a_job_that_is_over_is_not_waited_for_in_vain(desk):
    job = desk.sbatch("#!/bin/sh\necho ran\n").wait()
    with pytest.raises(
        RanklabError, match=f"Job {job.number} is COMPLETED, and was not seen RUNNING. It printed:\nran"
    ):
        job.wait(state="RUNNING")
    with pytest.raises(
        RanklabError, match=f"Job {job.number} is COMPLETED, and has not printed 'walked'. It printed:\nran"
    ):
        job.wait(text="walked")
    assert job.wait(text="ran") is job
    assert "MinJobAge               = 604800 sec" in desk.run("scontrol show config")


@slurm_here
def test_a_job_that_cannot_start_is_told_with_slurms_reason(desk):
    script = "#!/bin/sh\n#SBATCH --nodes=4\necho ran\n"
    told = r"is not over after 3 s: it is PENDING \(Partition(Config|NodeLimit)\)\. It has printed nothing\."
    with pytest.raises(RanklabError, match=told):
        desk.sbatch(script).wait(timeout=3)


@slurm_here
def test_what_an_array_printed_is_told_task_by_task(desk):
    script = '#!/bin/sh\n#SBATCH --array=1,2,10\necho "task $SLURM_ARRAY_TASK_ID"\n'
    job = desk.sbatch(script).wait()
    assert job.output == "task 1\ntask 2\ntask 10\n"
    assert job.lines == ["task 1", "task 10", "task 2"]
    assert job.wait(text="task 10") is job


@slurm_here
def test_a_folder_that_a_job_has_made_is_none_of_its_files(desk):
    job = desk.sbatch("#!/bin/sh\nmkdir run-$SLURM_JOB_ID.d\necho kept > run-$SLURM_JOB_ID.txt\n").wait()
    assert job.files == {f"run-{job.number}.txt": "kept\n", f"slurm-{job.number}.out": ""}


@slurm_here
def test_what_a_command_leaves_in_the_background_is_not_waited_for(desk):
    number = desk.run("sleep 1234 & echo $!", timeout=60)
    assert desk.run(f"ps -o args= -p {number}") == "sleep 1234"
    desk.run(f"kill {number}")


@slurm_here
@pytest.mark.parametrize("command", ["srun --nodes=3 sleep 1000", "echo begun; srun --nodes=3 sleep 1000; echo over"])
def test_a_command_that_is_ended_takes_its_job_from_the_nodes(desk, command):
    with pytest.raises(RanklabError, match="was not finished after 3 s and was ended"):
        desk.run(command, timeout=3)
    assert eventually(lambda: desk.run("squeue --noheader --states=RUNNING,PENDING") == "", 60)


@slurm_here
def test_a_requeued_job_can_be_told_to_start_soon(desk):
    again = '[ "$SLURM_RESTART_COUNT" ] || { scontrol requeue $SLURM_JOB_ID; sleep 600; }'
    script = f"#!/bin/bash\n#SBATCH --requeue --open-mode=append\necho life ${{SLURM_RESTART_COUNT:-0}}\n{again}\n"
    job = desk.sbatch(script).wait(text="life 0").wait(state="PENDING")
    # Slurm counts whole seconds: a start in the second in which the first life ended would be refused.
    desk.run(f"scontrol update job={job.number} StartTime=now+4")
    assert job.wait().state == "COMPLETED" and job.ask()[0]["Restarts"] == "1"
    assert [line for line in job.lines if line.startswith("life")] == ["life 0", "life 1"]


@slurm_here
def test_an_urgent_job_gets_the_nodes_of_another_one_that_goes_on_later(desk):
    options = "--nodes=3 --exclusive --requeue --open-mode=append --signal=B:USR1"
    again = "trap 'echo signal; scontrol requeue $SLURM_JOB_ID' USR1\n"
    life = "echo life ${SLURM_RESTART_COUNT:-0}\n[ $SLURM_RESTART_COUNT ] && exit\nsleep 600 &\nwait\n"
    job = desk.sbatch(f"#!/bin/bash\n#SBATCH {options}\n{again}{life}").wait(text="life 0")
    urgent = desk.sbatch("#!/bin/bash\n#SBATCH --nodes=3 --exclusive --partition=urgent\nhostname\n").wait()
    assert urgent.lines == ["computer1"] and job.wait(state="PENDING").ask()[0]["Restarts"] == "1"
    desk.run(f"scontrol update job={job.number} StartTime=now+4")
    assert job.wait().state == "COMPLETED"
    # The step's own daemon may say that the job was requeued, where it is still there to say it.
    assert [line for line in job.lines if not line.startswith("slurmstepd-")] == ["life 0", "life 1", "signal"]


@slurm_here
def test_gpus_are_names_that_slurm_hands_out():
    with ranklab.hosts(2) as lab:
        slurm = Slurm(lab, gpus=2)
        said = slurm.run("srun --ntasks=2 --gpus-per-task=1 --label sh -c 'echo $CUDA_VISIBLE_DEVICES'")
        assert sorted(said.splitlines()) == ["0: 0", "1: 1"]


def test_missing_programs_are_told_with_their_packages(monkeypatch):
    monkeypatch.setattr("ranklab.programs.shutil.which", lambda name, path: None)
    needs = "Slurm needs munged, slurmctld, slurmd, srun: sudo apt install munge slurm-client slurmctld slurmd"
    with pytest.raises(WorldError, match=needs):
        Slurm([])


def test_the_batch_files_of_the_book_choose_their_port():
    for name in "train.sbatch", "count.sbatch":
        text = (SCRIPTS / name).read_text()
        assert "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))" in text
        assert os.linesep.join(text.splitlines()[:1]) == "#!/bin/bash"


def test_one_host_is_told_at_once(monkeypatch):
    monkeypatch.setattr("ranklab.lab.slurm.lacking", list)
    with pytest.raises(WorldError, match="a node and a login node"):
        Slurm(["the only one"])
