"""Training: loss, optimizer, schedule, the step, and runs that can be stopped and resumed."""

from gnomon.train.config import TrainConfig
from gnomon.train.evaluation import Evaluation
from gnomon.train.health import Spike
from gnomon.train.loop import TrainReport, resume, train
from gnomon.train.lora import add_lora, merge_lora
from gnomon.train.lora_files import load_lora, save_lora
from gnomon.train.loss import Loss, cross_entropy, next_token_loss, window_loss
from gnomon.train.measure import Measure
from gnomon.train.metrics import plot_loss, read_metrics
from gnomon.train.optim import adamw, optimizer_of
from gnomon.train.schedule import rate, warmup_cosine
from gnomon.train.state import State, read_state
from gnomon.train.step import NotFinite, training_step
from gnomon.train.task import Batch, Task
from gnomon.train.text import Text, Windows, evaluate

__all__ = [
    "Batch",
    "Evaluation",
    "Loss",
    "Measure",
    "NotFinite",
    "Spike",
    "State",
    "Task",
    "Text",
    "TrainConfig",
    "TrainReport",
    "Windows",
    "adamw",
    "add_lora",
    "cross_entropy",
    "evaluate",
    "load_lora",
    "merge_lora",
    "next_token_loss",
    "optimizer_of",
    "plot_loss",
    "rate",
    "read_metrics",
    "read_state",
    "resume",
    "save_lora",
    "train",
    "training_step",
    "warmup_cosine",
    "window_loss",
]
