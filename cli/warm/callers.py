"""What the callers of a run are copies of has imported this, and with it what each of them would import for seconds."""

from cli.warm.imports import import_first
from providers.direct import warm_up

import_first()
warm_up()
