"""An executor by the name that a flag gives it."""

from gnomon.device import resolve_device
from gnomon.errors import BadValue
from gnomon.lab.executors import Executor, Serial
from gnomon.lab.processes import Processes
from gnomon.lab.ray_cluster import RayCluster


def executor_for(text: str = "processes", workers: int | None = None, device: str = "cpu") -> Executor:
    """The executor called "serial", "processes", "ray" (a cluster of this machine's own) or "ray://HOST:PORT".

    workers: how many cells run at once, by default one per core (`device` cpu), one for a device that has its own, or
    all that the cluster has room for.
    """
    if workers is not None and workers < 1:
        raise BadValue(f"workers must be at least 1, got {workers}")
    if text == "ray" or text.startswith("ray://"):
        return RayCluster(None if text == "ray" else text, workers)
    if text == "serial":
        return Serial()
    if text != "processes":
        raise BadValue(f"the executor is serial, processes, ray or ray://HOST:PORT, got {text!r}")
    if workers is None and resolve_device(device).type != "cpu":
        workers = 1
    return Processes(workers)


__all__ = ["executor_for"]
