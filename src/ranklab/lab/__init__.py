"""Hosts on one machine: network namespaces with names, addresses and a link of a given rate."""
