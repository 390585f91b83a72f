"""Pauses of a service, and how they are kept short: no request is answered while one thread holds the interpreter."""

import gc


def spare_what_lasts() -> None:
    """Shorten the pauses of a service that has just started.

    The garbage collector looks through all objects now and then, which takes a tenth of a second where libraries have
    made hundreds of thousands of them: those of the start stay, so it passes them over.
    """
    gc.collect()
    gc.freeze()
