"""A PostgreSQL server for tests: a cluster of its own in a temporary folder, with a password, on loopback only."""

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from tests.e2e.processes import wait_until
from tests.servers.ports import free_port

PASSWORD = "s3cret of the tests"
READER = "reader"
ACCOUNT = "postgres"  # the server does not run as root: then it is this account's, which its package brings


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The address of a running server's database, without its password; the server is gone at the end."""
    # Not pytest's own folder, which another account may not enter
    with TemporaryDirectory(prefix="evalake-postgres-", ignore_cleanup_errors=True) as folder:
        data, secret = Path(folder, "data"), Path(folder, "password")
        secret.write_text(PASSWORD)
        account = {"user": ACCOUNT, "group": ACCOUNT, "extra_groups": []} if os.geteuid() == 0 else {}
        if account:
            for path in (Path(folder), secret):
                shutil.chown(path, ACCOUNT, ACCOUNT)
        made = [program("initdb"), "--pgdata", data, "--username", READER, "--pwfile", secret, "--no-sync"]
        subprocess.run(
            [*made, "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"],
            check=True,
            capture_output=True,
            cwd=folder,
            **account,  # type: ignore[call-overload]
        )
        port = free_port()
        command = [program("postgres"), "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder, "-F"]
        with Path(folder, "log").open("wb") as log:
            server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **account)  # type: ignore[call-overload]
            try:
                address = f"postgresql://{READER}@127.0.0.1:{port}/postgres"
                wait_until(lambda: server.poll() is not None or _answers(address), "the start of PostgreSQL")
                assert server.poll() is None, Path(folder, "log").read_text(errors="replace")
                yield address
            finally:
                server.send_signal(signal.SIGINT)  # its fast way to stop
                server.wait(600)


def with_password(address: str) -> str:
    """The address for SQLAlchemy, as its owner uses it."""
    return address.replace("postgresql://", "postgresql+pg8000://").replace("@", f":{PASSWORD.replace(' ', '%20')}@")


def new_database(address: str, name: str) -> str:
    """Make an empty database; returns its address, as operators give it to a Prefect server."""
    engine = create_engine(with_password(address), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return with_password(address).replace("+pg8000", "+asyncpg").replace("/postgres", f"/{name}")


def copy_sqlite(database: Path, address: str) -> None:
    """Bring every table of a SQLite file, as its own schema declares it, into the database that is at the address."""
    source = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    engine = create_engine(with_password(address))
    with engine.begin() as target:
        tables = source.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rootpage").fetchall()
        for name, declared in tables:
            target.execute(text(f"DROP TABLE IF EXISTS {name} CASCADE"))
            target.execute(text(declared.replace("DATETIME", "TIMESTAMP")))
        target.execute(text("SET session_replication_role = replica"))  # rows come before what they refer to
        for name, _ in tables:
            truths = {each[1]: each[2] == "BOOLEAN" for each in source.execute(f"PRAGMA table_info({name})")}
            insert = text(f"INSERT INTO {name} VALUES ({', '.join(f':{column}' for column in truths)})")
            for row in source.execute(f"SELECT {', '.join(truths)} FROM {name}"):
                values = zip(truths.items(), row, strict=True)
                # SQLite has no truth values of its own
                target.execute(insert, {c: bool(v) if truth and v is not None else v for (c, truth), v in values})
    engine.dispose()
    source.close()


def program(name: str) -> str | None:
    """Returns where a program of the server is: Debian's package keeps them off the path."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(installed[-1]) if installed else None)


def _answers(address: str) -> bool:
    engine = create_engine(with_password(address))
    try:
        with engine.connect():
            return True
    except SQLAlchemyError:
        return False
    finally:
        engine.dispose()
