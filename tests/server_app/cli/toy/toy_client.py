# SPDX-License-Identifier: Apache-2.0
"""ClientApp of the toy that the tests start."""

import time

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    behaviour = message.content["toy"]["behaviour"]
    print("toy client", context.node_config["partition-id"], __file__, flush=True)
    if behaviour == 1:
        raise ValueError("the client meant to fail")
    if behaviour == 2:
        time.sleep(1000)
    return Message(RecordDict(), reply_to=message)
