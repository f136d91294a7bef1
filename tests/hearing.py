"""What the package logs, for a test that asks what is told."""

import logging


class Heard(logging.Handler):
    """The messages that are logged from now on, once each is told."""

    def __init__(self):
        super().__init__()
        self.messages = []
        logging.getLogger("stream_pegasos").addHandler(self)

    def emit(self, record):
        self.messages.append(record.getMessage())

    def close(self):
        logging.getLogger("stream_pegasos").removeHandler(self)
        super().close()
