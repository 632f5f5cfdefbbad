"""Captured steps: what makes a small transformer pass fast on a GPU, for every in-process model.

``capture`` records a step as a CUDA graph and checks it, ``decoder`` runs decoder layers over a
cache of fixed size, ``attention`` and ``fused`` are its parts, ``sampling`` draws tokens without
leaving the device. All of it runs plainly on the CPU as well and needs torch and nothing else, but
for ``single`` and its ``kernels``: one token in few launches, on a GPU with triton.
"""
