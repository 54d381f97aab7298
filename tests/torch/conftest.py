"""Without torch nothing here can be imported, not even to be left out."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") is not None else ["kinds.py"]
