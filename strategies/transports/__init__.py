# SPDX-License-Identifier: Apache-2.0
"""Transports: how tensors travel between clients and trunk."""

from strategies.transports.base import RoundWork, Transport
from strategies.transports.message import MessageTransport
from strategies.transports.ray import RayTransport

TRANSPORTS: dict[str, type[Transport]] = {"message": MessageTransport, "ray": RayTransport}

__all__ = ["TRANSPORTS", "MessageTransport", "RayTransport", "RoundWork", "Transport"]
