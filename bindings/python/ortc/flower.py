"""Clients of Flower that train an artifact. What travels is one array with all trained numbers.

    app = ortc.flower.client_app("digits", train=lambda context: f"part-{context.node_config['partition-id']}.npz")

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
except ImportError as error:
    raise ImportError("ortc.flower needs the package flwr, 1.21 or newer: pip install flwr") from error

from ortc._artifact import Artifact
from ortc._data import Data
from ortc._errors import ArgumentError
from ortc._session import Session
from ortc._trainer import Trainer

_ARRAYS, _CONFIG, _METRICS, _WEIGHTS, _STATE = "arrays", "config", "metrics", "weights", "ortc"


def get_arrays(session: Session) -> ArrayRecord:
    """What a session has trained, as read_parameters gives it: what a server starts with, and clients send."""
    return ArrayRecord({_WEIGHTS: Array(session.read_parameters())})


def set_arrays(session: Session, arrays: ArrayRecord) -> None:
    """Takes what get_arrays has given, or a mean of such."""
    session.write_parameters(arrays[_WEIGHTS].numpy().astype(np.float32, copy=False))  # means may be wider


def client_app(
    artifact: Artifact | str | os.PathLike[str],
    train: Callable[[Context], Data],
    eval: Callable[[Context], Data] | None = None,
    *,
    epochs: int = 1,
    threads: int = 0,
    **options: Any,
) -> ClientApp:
    """An app that trains on the data that `train` gives for a client, and evaluates on those of `eval`.

    `options`: of ortc.Trainer, such as metrics. What the server configures is taken before: `epochs`, and `lr` for the learning rate.
    Optimizer state and running statistics stay in the context of the client from round to round."""
    opened = artifact if isinstance(artifact, Artifact) else Artifact(artifact)
    app = ClientApp()

    def begin(message: Message, context: Context) -> tuple[Session, Mapping[str, Any]]:
        session = Session(opened, threads=threads)
        if _STATE in context.state:
            session.from_bytes(context.state[_STATE]["session"])
        set_arrays(session, message.content[_ARRAYS])
        return session, message.content.get(_CONFIG, {})

    @app.train()
    def on_train(message: Message, context: Context) -> Message:
        session, config = begin(message, context)
        given = {"seed": config.get("server-round", 0), **options} | ({"lr": config["lr"]} if "lr" in config else {})
        trainer = Trainer(session, train(context), **given)
        events = trainer.fit(epochs=int(config.get("epochs", epochs)))
        losses = [event["loss"] for event in events if "event" not in event]
        rows = next(iter(session.program.steps()[session.binding]["train"][0]))[2][0]
        context.state[_STATE] = ConfigRecord({"session": session.to_bytes()})
        metrics = MetricRecord({"num-examples": trainer.step * rows, "loss": sum(losses) / len(losses)})
        return Message(RecordDict({_ARRAYS: get_arrays(session), _METRICS: metrics}), reply_to=message)

    @app.evaluate()
    def on_evaluate(message: Message, context: Context) -> Message:
        if eval is None:
            raise ArgumentError("this client has no data to evaluate on: give client_app eval=..., or the strategy fraction_evaluate=0")
        session, _ = begin(message, context)
        rows = [0]

        def count(outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[float, float]:
            rows[0] += len(next(iter(inputs.values())))
            return 0.0, 1.0

        data = eval(context)
        found = Trainer(session, data, **{**options, "metrics": [*options.get("metrics", ()), ("rows", count)]}).evaluate(data)
        del found["rows"]
        metrics = MetricRecord({"num-examples": rows[0], **found})
        return Message(RecordDict({_METRICS: metrics}), reply_to=message)

    return app
