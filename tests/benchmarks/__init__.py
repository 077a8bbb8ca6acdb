"""Measurements that anyone can repeat, with what they compare against."""
