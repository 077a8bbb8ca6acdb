"""Loaders, their workers, samplers."""

import os
import resource
import signal
import time
import warnings

import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

from .. import stage

ROWS = TensorDataset(torch.arange(10))


@stage.program()
def sampler_and_shuffle(rank):
    DataLoader(ROWS, sampler=DistributedSampler(ROWS, 2, 0), shuffle=True)


@stage.program()
def batch_sampler_and_size(rank):
    DataLoader(ROWS, batch_sampler=[[0, 1]], batch_size=4)


@stage.program()
def sampler_beyond_the_world(rank):
    DistributedSampler(ROWS, num_replicas=2, rank=2)


class Stream(IterableDataset):
    def __init__(self, length=None):
        self.length = length

    def __iter__(self):
        return iter(range(12))

    def __len__(self):
        if self.length is None:
            raise TypeError("a stream has no length")
        return self.length


@stage.program()
def stream_shuffled(rank):
    DataLoader(Stream(), shuffle=True)


@stage.program()
def stream_with_a_sampler(rank):
    DataLoader(Stream(), sampler=[0])


@stage.program()
def stream_longer_than_told(rank):
    loader = DataLoader(Stream(10))
    print(len(loader), len(list(loader)))


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4


class Killed(Rows):
    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


class Faulty(Rows):
    def __getitem__(self, index):
        raise ValueError("row 0 is broken")


class BusError(Rows):
    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGBUS)


class Gone(Rows):
    def __getitem__(self, index):
        os._exit(0)


class Slow(Rows):
    def __getitem__(self, index):
        time.sleep(30)


class Ragged(Rows):
    def __getitem__(self, index):
        return torch.ones(2 + index)


class Nothing(Rows):
    def __getitem__(self, index):
        return None


@stage.program()
def worker_killed(rank):
    list(DataLoader(Killed(), num_workers=1))


@stage.program()
def worker_without_shared_memory(rank):
    list(DataLoader(BusError(), num_workers=1))


@stage.program()
def worker_gone(rank):
    list(DataLoader(Gone(), num_workers=1))


@stage.program()
def worker_raises(rank):
    list(DataLoader(Faulty(), num_workers=1))


@stage.program()
def worker_slow(rank):
    list(DataLoader(Slow(), num_workers=1, timeout=1))


@stage.program()
def too_many_workers(rank):
    warnings.simplefilter("always")
    DataLoader(ROWS, num_workers=4096)


@stage.program()
def rows_of_unequal_size(rank):
    list(DataLoader(Ragged(), batch_size=2))


@stage.program()
def rows_of_none(rank):
    list(DataLoader(Nothing(), batch_size=2))


@stage.program()
def lambda_in_a_worker(rank):
    list(DataLoader(ROWS, num_workers=1, collate_fn=lambda rows: rows, multiprocessing_context="spawn"))


@stage.program()
def prefetch_without_workers(rank):
    DataLoader(ROWS, prefetch_factor=2)


@stage.program()
def persistent_without_workers(rank):
    DataLoader(ROWS, persistent_workers=True)


@stage.program()
def empty_dataset(rank):
    DataLoader([], shuffle=True)


class Terminated(Rows):
    def __getitem__(self, index):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


@stage.program()
def worker_terminated(rank):
    list(DataLoader(Terminated(), num_workers=1))


def few_files():
    """Allow this process 64 open files."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


@stage.program()
def files_left_open(rank):
    few_files()
    print([os.open("/dev/null", os.O_RDONLY) for _ in range(64)])


@stage.program()
def batches_kept(rank):
    few_files()
    list(DataLoader([torch.ones(3)] * 100, num_workers=1))


@stage.program()
def shared_without_files(rank):
    few_files()
    print([torch.ones(3).share_memory_() for _ in range(64)])


@stage.program()
def larger_than_shared_memory(rank):
    memory = os.statvfs("/dev/shm")
    torch.UntypedStorage._new_shared(memory.f_blocks * memory.f_frsize + (1 << 30))
