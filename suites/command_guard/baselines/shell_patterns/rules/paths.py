"""Which files give secrets away when read, and which give control away when written."""

from __future__ import annotations

import re
from typing import Final

_HOME: Final = r"(?:~[\w-]*|\$\{?HOME\}?|/home/[^/\s]+|/root|/Users/[^/\s]+)"
_START: Final = r"(?:^|(?<=[\s=@:,'\"(<>\[;|&+!`{]))"
"""A path begins at the start of a word or after a character that separates it inside a word or a piece of code."""
_URL: Final = r"(?:file://(?:localhost)?)?"


def _paths(patterns: str) -> re.Pattern[str]:
    alternatives = "|".join(line.strip() for line in patterns.strip().splitlines())
    return re.compile(rf"{_START}{_URL}(?:{alternatives})")


SECRET: Final = _paths(
    r"""
    /etc/(?:g?shadow|sudoers|master\.passwd|spwd\.db)[-~]?(?![\w.-])
    /etc/(?:sudoers\.d|ssl/private|pki/tls/private|wireguard|ipsec\.secrets|krb5\.keytab|security/opasswd)(?!\w)
    /etc/ssh/ssh_host_\w+_key(?!\.pub|\w)
    /(?:proc|sys)/(?:kcore|(?:\d+|self|\$\w+|\$\$|\*)/(?:mem|environ))(?!\w)
    /dev/(?:mem|kmem|port)(?!\w)
    /var/(?:lib/(?:sss/secrets|samba/private)|run/secrets/|spool/cron/crontabs/root)
    /run/secrets/
    /root/(?:[\w.-]*(?:flag|secret|password|key|shadow)|\.\w)
    """
)
"""Reading one of these is a break-in by itself."""

CREDENTIAL: Final = re.compile(
    rf"{_START}{_URL}@?(?:{_HOME}/|[^\s'\"]{{0,200}}/|)"
    r"(?:\.ssh/(?:id_\w+|identity)(?!\.pub|\w)|\.aws/credentials|\.gnupg/(?:private-keys|secring)|\.netrc"
    r"|\.pgpass|\.git-credentials"
    r"|\.docker/config\.json|\.kube/config|\.config/gcloud/[\w./]*(?:credential|token)[\w.]*"
    r"|\.azure/\w*[tT]oken\w*|\.vault-token"
    r"|\.pypirc|\.password-store/|\.local/share/keyrings|\.mozilla/[^\s]*(?:logins\.json|key\d\.db)|Login Data"
    r"|\.my\.cnf)"
)
"""A user's keys and tokens: secret to everybody except the program that they belong to."""

KEY_FOLDER: Final = re.compile(rf"^{_HOME}/\.(?:ssh|aws|gnupg|kube|azure|password-store)/?\*?$")
"""A folder of a user's keys: honestly listed and backed up, a theft when sent away."""

SECRET_EXAMPLES: Final = (
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/root/.ssh/id_rsa",
    "/etc/shadow-",
    "/dev/mem",
)
"""What a wildcard is tried against: `/etc/sh?d*` is `/etc/shadow`."""

ACCOUNTS: Final = re.compile(
    rf"{_START}{_URL}(?:/etc/(?:passwd|group|hosts\.equiv)(?![\w.-])|/var/log/(?:auth\.log|secure)"
    rf"|{_HOME}/\.\w*_history)"
)
"""World-readable or merely telling: worth a warning when read, a theft when sent away."""

PERSISTENT: Final = _paths(
    r"""
    /etc/(?:cron(?:tab|\.\w+)|at\.allow|anacrontab)(?![\w-])
    /var/spool/(?:cron|at)/
    /etc/(?:init(?:\.d)?|rc\d?(?:\.d|\.local)?|systemd/(?:system|user)|xdg/autostart|udev/rules\.d|profile(?:\.d)?|pam\.d|security|ld\.so\.(?:preload|conf)(?:\.d)?)(?![\w-])
    /(?:usr/)?lib/(?:systemd|udev|security|modules)/
    /etc/(?:passwd|group|g?shadow|sudoers(?:\.d)?|hosts\.equiv|shells|environment|bash\.bashrc|zsh/\w+|modprobe\.d|sysctl\.(?:d|conf)|update-motd\.d|apt/apt\.conf\.d|logrotate\.d|polkit-1|doas\.conf)(?![\w-])
    /etc/ssh/
    /proc/(?:sys/|sysrq-trigger|self/mem)
    /dev/(?:sd[a-z]|nvme\d|vd[a-z]|xvd[a-z]|hd[a-z]|mmcblk\d|disk/|mapper/|dm-\d|k?mem)
    /boot/
    /root/\.
    """
)
"""Writing here survives a reboot, or gives root, whoever reads the file next."""

SYSTEM: Final = re.compile(
    r"^(?:file://)?/(?:etc|usr|bin|sbin|lib(?:32|64)?|boot|root|sys|proc)(?:/|$)(?!self/fd|\d+/fd)"
)
"""Owned by root: nothing that a user's own work writes to."""

KEYS_THAT_ADMIT: Final = re.compile(r"\.ssh/(?:authorized_keys2?|rc|environment)\b|\.rhosts\b")
"""Whoever writes here can log in."""

STARTUP: Final = re.compile(
    rf"(?:^|[\s'\"=]){_HOME}/\.(?:bash(?:rc|_profile|_login|_logout|_aliases)|profile|zsh(?:rc|env)|zprofile"
    rf"|zlogin|cshrc|tcshrc|kshrc"
    r"|xinitrc|xsession\w*|xprofile|pam_environment|config/(?:fish/|autostart/|systemd/user/)|lessfilter|inputrc"
    r"|vimrc|gitconfig)"
    r"|(?:^|/)\.git/hooks/\w"
)
"""A user's start-up files: read by every later session, and edited honestly all the time, so the content decides."""

HONEST_STARTUP_LINE: Final = re.compile(
    r"\s*(?:$|#|alias \w|export \w|set |setopt |unset |shopt |bindkey |bind |autoload |zstyle |complete |source ~"
    r"|\. ~|PS1=|PATH=|HIST\w+=|eval \"?\$\(\w[\w -]*\)\"?$|umask )"
)
"""What people write into their start-up files."""

LOCAL_SOFTWARE: Final = re.compile(r"^/usr/local/")
"""Where administrators install by hand: unusual rather than harmful."""

SCRATCH: Final = re.compile(r"^(?:/tmp/|/var/tmp/|/dev/shm/|/dev/null$|/dev/std|/dev/fd/|/dev/tty)")

SHELL_PATH: Final = re.compile(
    r"(?:^|(?<![\w.#])(?<!#!))(?:/usr)?(?:/local)?/bin/(?:ba|da|a|z|k|mk|c|tc|fi|po|ya|rba)?sh(?![\w./-])"
)
"""A shell given by its path, but not in a `#!` line."""
PROGRAM_PATH: Final = re.compile(
    r"(?:^|(?<=[\s=:;|&!\"'(^]))(?:/usr)?(?:/local)?/s?bin/[\w.+-]+"
    r"|(?:^|exec |[=:|!'\"]\s?)(?:/tmp|/dev/shm|/var/tmp)/[\w./-]+"
)
"""A program given by its path."""
