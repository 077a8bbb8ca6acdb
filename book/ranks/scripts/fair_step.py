"""A step on unequal shares, fair to every sample, and the bytes of its model. The chapter *why-distribute* runs it.

torchrun --standalone --nproc-per-node=3 fair_step.py
"""

import torch
import torch.distributed as dist


def bytes_of(tensors):
    """Count each storage once."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)  # the same weights and the same eight samples on every rank
net = torch.nn.Linear(256, 256)
adam = torch.optim.Adam(net.parameters())
mine = torch.randn(8, 256).tensor_split(world_size)[rank]  # on three ranks 3, 3 and 2 samples

count = torch.tensor(len(mine))
dist.all_reduce(count)  # how many samples all ranks have
loss_of_each = net(mine).square().mean(1)
(loss_of_each.sum() / count).backward()  # not mean(): every sample weighs 1/count, whatever its rank
for parameter in net.parameters():  # each has a gradient, on every rank
    dist.all_reduce(parameter.grad)
adam.step()

if rank == 0:
    parameters = list(net.parameters())
    gradients = [parameter.grad for parameter in parameters]
    states = [tensor for state in adam.state.values() for tensor in state.values()]
    for name, tensors in {"parameters": parameters, "gradients": gradients, "Adam": states}.items():
        print(f"{name}: {bytes_of(tensors)} bytes")
    print(f"{count} samples, norm of the gradient {net.weight.grad.norm():.4f}")
dist.destroy_process_group()
