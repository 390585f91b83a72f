"""A folder full of other people's files: whatever is run in it is to take no orders from them."""

from pathlib import Path

SHADOWED = ("core", "litellm", "polars", "prefect", "service", "sitecustomize", "usercustomize", "uvicorn")


def write(parent: Path) -> Path:
    """Write a folder whose files name a logging configuration that runs a command, in every way that Prefect knows."""
    (folder := parent / "hostile").mkdir()

    def attack(name: str) -> str:
        # A factory of Python's logging configuration may be any callable
        file = folder / f"{name}.yml"
        file.write_text(
            f"version: 1\ndisable_existing_loggers: false\nloggers: {{evil: {{handlers: [evil]}}}}\n"
            f'handlers: {{evil: {{"()": os.system, command: "touch {folder / name}.marker"}}}}\n'
        )
        return str(file)

    (folder / "profiles.toml").write_text(
        f'active = "evil"\n[profiles.evil]\nPREFECT_LOGGING_SETTINGS_PATH = "{attack("profile")}"\n'
    )
    (folder / ".env").write_text(
        f"PREFECT_LOGGING_SETTINGS_PATH={attack('dotenv')}\nPREFECT_PROFILES_PATH={folder / 'profiles.toml'}\n"
    )
    (folder / "prefect.toml").write_text(f'[logging]\nconfig_path = "{attack("prefect")}"\n')
    (folder / "pyproject.toml").write_text(f'[tool.prefect.logging]\nconfig_path = "{attack("pyproject")}"\n')
    for module in SHADOWED:
        (folder / f"{module}.py").write_text(f"open({str(folder / module)!r} + '.marker', 'w')\n")
    return folder


def markers(folder: Path) -> list[str]:
    """Name the orders that were taken."""
    return sorted(path.name for path in folder.glob("*.marker"))
