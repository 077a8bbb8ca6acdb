"""What one forward and backward of a layer takes. The chapter *tensor-parallel* imports it.

from accounts import account      # account(layer, x, weights, *edges)
"""

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode


def account(layer, x, w, *edges):
    """Return the floating-point operations of a step, the bytes of the weights, and the bytes kept for backward.

    A storage that several tensors share counts once; the weights are not counted again among what is kept.
    """
    w = {name: weight.detach().clone().requires_grad_() for name, weight in w.items()}  # gradients stay as they are
    kept = {}
    own = {weight.untyped_storage().data_ptr() for weight in w.values()}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    x = x.clone().requires_grad_()
    with FlopCounterMode(display=False) as flops:
        with saved_tensors_hooks(keep, lambda tensor: tensor):
            y = layer(x, w, *edges)
        y.backward(torch.ones_like(y))
    held = sum(weight.numel() * weight.element_size() for weight in w.values())
    return flops.get_total_flops(), held, sum(kept.values())
