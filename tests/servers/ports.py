"""Ports for servers of tests that take a number only; servers of evalake inherit a listening socket instead."""

import socket


def free_port() -> int:
    """Find a port of the loopback interface that the kernel gives to nobody else for the next minute.

    A connection that its listening side closes first leaves the port in TIME_WAIT: only a server that asks for this
    very port, with SO_REUSEADDR as all servers do, still gets it.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as client:
            listener.accept()[0].close()
            client.recv(1)
        return int(address[1])
