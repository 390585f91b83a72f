"""The fork server of queries: `python -P -B -m storage.sql.fork_server SOCKET` imports once what each of them needs.

It has nothing that a query may not see: it reads no lake and has no credentials. A copy that it makes confines itself
before it reads what it is asked, as a process that was started for one query does; what it imported starts no thread,
so that nothing of it escapes that. It ends with the process that asks it, and the copies with both.
"""

import gc
import os
import selectors
import signal
import socket
import struct
import sys
from contextlib import suppress

from core.forks import has_threads

ACCEPTED = b"y"
STATUS = struct.Struct("!i")
STREAMS = (0, 1, 2)
IDLE_SECONDS = 900.0


class Copies:
    """Makes a copy of this process for each request, and tells how each ended."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._callers: dict[int, socket.socket] = {}  # by the process that is theirs

    def serve(self) -> bool:
        """Make copies until nobody can ask any more; returns whether this is a copy."""
        while ready := self._selector.select(None if self._callers else IDLE_SECONDS):
            for key, _ in ready:
                if key.fileobj is self._requests:
                    message, descriptors, _, _ = socket.recv_fds(self._requests, 1, 1 + len(STREAMS))
                    if not message:
                        self._end_all()
                        return False
                    if self._fork(*descriptors):
                        return True
                elif key.data in self._callers:
                    self._end(key.data)
        return False

    def _fork(self, caller: int, *streams: int) -> bool:
        """Make a copy with these streams; returns whether this is the copy."""
        if (process := os.fork()) == 0:
            for number, stream in zip(STREAMS, streams, strict=True):
                os.dup2(stream, number)
            os.closerange(len(STREAMS), os.sysconf("SC_OPEN_MAX"))  # the other callers', too
            return True
        for stream in streams:
            os.close(stream)
        connection = self._callers[process] = socket.socket(fileno=caller)
        for sign in (connection, os.pidfd_open(process)):  # the caller has gone, or the copy has ended
            self._selector.register(sign, selectors.EVENT_READ, process)
        with suppress(OSError):
            connection.sendall(ACCEPTED)
        return False

    def _end_all(self) -> None:
        for process in list(self._callers):
            self._end(process)

    def _end(self, process: int) -> None:
        """End a copy, where it has not ended, and tell its caller how it did."""
        os.kill(process, signal.SIGKILL)  # until it is waited for, the number is its own
        _, status = os.waitpid(process, 0)
        for key in [key for key in self._selector.get_map().values() if key.data == process]:
            self._selector.unregister(key.fileobj)
            if isinstance(key.fileobj, int):
                os.close(key.fileobj)
        with self._callers.pop(process) as connection, suppress(OSError):
            connection.sendall(STATUS.pack(status))


def main(descriptor: int) -> None:
    """Serve what comes through the socket; in a copy, answer the query."""
    import storage.sql.process  # noqa: F401 - what a query needs
    from storage.sql.__main__ import answer_and_end

    if has_threads():
        print("a process with threads cannot be copied for queries", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(1)
    gc.collect()
    gc.freeze()  # a copy need not look through what was there before it
    copies = Copies(socket.socket(fileno=descriptor))
    if copies.serve():
        answer_and_end()
    os._exit(0)  # without freeing, of which the engine complains


if __name__ == "__main__":
    main(int(sys.argv[1]))
