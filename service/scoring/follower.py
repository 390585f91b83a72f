"""The follower: reads the sources again and again, and announces the sessions that are new."""

import asyncio
import logging
import time

from service.scoring.events import Hub
from service.scoring.sessions import Sessions

logger = logging.getLogger("evalake.service")


async def follow(sessions: Sessions, hub: Hub, seconds: float) -> None:
    """Read what has changed in the sources every so many seconds, until cancelled."""
    while sessions.has_sources:
        await asyncio.sleep(seconds)
        try:
            new = await asyncio.to_thread(sessions.read_sources)
        except Exception:
            logger.exception("the sources of sessions could not be read")  # they are read again at the next turn
            continue
        for session_id in new:
            hub.publish({"type": "session.added", "session_id": session_id, "timestamp_us": time.time_ns() // 1000})
