"""What programs are: shells, wrappers that run the rest of their line, tools that only look, and tools that write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final


@cache
def names(text: str) -> frozenset[str]:
    """Split a string into the set of names written in it."""
    return frozenset(text.split())


SHELLS: Final = names(
    "sh bash dash ash zsh ksh ksh93 mksh lksh pdksh csh tcsh fish posh yash elvish rbash rksh rzsh sash hush"
    " xonsh nu pwsh powershell oksh scsh rc es"
)
SHELL_VALUES: Final = names("-o +o -O +O --rcfile --init-file")
"""Shell options that take the next word."""

VERSION_FLAGS: Final = names("--version --help -V -h -? help version")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the rest of its line as a command. Option lists are written as one string."""

    values: str = ""
    """Options that take the next word."""
    operands: int = 0
    """How many words stand before the command."""
    code: str = ""
    """Options whose value is shell code."""
    shell: str = ""
    """Options that ask for a shell."""
    bare_shell: bool = False
    """It starts a shell when no command is left."""
    marker: str = ""
    """The command begins after this word only."""
    joins: bool = False
    """Its words are joined into one line of shell code."""
    privileged: bool = False
    """The command gets other rights."""


def _shell(values: str = "", operands: int = 0, code: str = "") -> Wrapper:
    return Wrapper(values, operands, code, bare_shell=True)


def _root(values: str = "", operands: int = 0, code: str = "") -> Wrapper:
    return Wrapper(values, operands, code, bare_shell=True, privileged=True)


_PLAIN: Final = Wrapper()

WRAPPERS: Final[dict[str, Wrapper]] = {
    # other users and other roots
    "sudo": Wrapper(
        "-u -g -h -p -C -D -R -T -U -r -t --user --group --host", shell="-i -s --login --shell", privileged=True
    ),
    "doas": Wrapper("-u -C -a", shell="-s", privileged=True),
    "pkexec": _root("--user"),
    "su": _root("-s -g -G -w --shell --group", 1, "-c --command"),
    "runuser": _root("-u -g -G -s", 0, "-c --command"),
    "ksu": _root("-n -c", 0, "-e -a"),
    "sg": _shell("", 1, "-c"),
    "newgrp": _shell("", 9),
    **dict.fromkeys(names("chroot arch-chroot"), _root("-u", 1)),
    "systemd-nspawn": _root("-D -M -u -i"),
    "arch-nspawn": _root("-C -M -c -f", 1),
    "unshare": _shell("-S -G -R -w --setuid --setgid --root --wd --propagation"),
    "nsenter": _root("-t -S -G --target --setuid --setgid"),
    "capsh": Wrapper(bare_shell=True, marker="--"),
    **dict.fromkeys(names("firejail fakeroot proot linux32 linux64 i386 x86_64"), _shell("-l -s -i -b -r -w")),
    "bwrap": _shell("--bind --ro-bind --dev --proc --tmpfs --chdir --setenv --symlink"),
    "aa-exec": _shell("-p -n --profile --namespace"),
    "setarch": _shell("", 1),
    "setpriv": Wrapper("--reuid --regid --groups --inh-caps --bounding-set"),
    # priority, limits, time, streams
    "env": Wrapper("-u -C --unset --chdir", code="-S --split-string"),
    "timeout": Wrapper("-s -k --signal --kill-after", 1),
    "nice": Wrapper("-n --adjustment"),
    "ionice": Wrapper("-c -n --class --classdata"),
    **dict.fromkeys(names("chrt taskset setlock faketime runcon"), Wrapper("-T -P -D", 1)),
    **dict.fromkeys(
        names("choom prlimit softlimit chpst"), Wrapper("-n -p -o -m -d -s -l -a -f -c -r -t -u -U -b -e -C -L")
    ),
    "flock": Wrapper("-w -E --timeout", 1, "-c --command"),
    "cpulimit": Wrapper("-l -p -e --limit --exe --pid"),
    **dict.fromkeys(names("time multitime"), Wrapper("-f -o -i -I -n -r -s --format --output")),
    "stdbuf": Wrapper("-i -o -e --input --output --error"),
    "exec": Wrapper("-a"),
    "watch": Wrapper("-n --interval", joins=True),
    "script": _shell("-T -o -t -I -O -B -m --logging-format", 9, "-c --command"),
    "rlwrap": Wrapper("-b -f -H -l -m -p -s -t -w -z -C -D -g -O -P -q -S"),
    "xvfb-run": Wrapper("-n -s -f -e -p"),
    "dbus-run-session": Wrapper(marker="--"),
    "openvt": Wrapper("-c", marker="--"),
    "ssh-agent": Wrapper("-a -t -E -O"),
    "torsocks": Wrapper("-u -p -P"),
    "sshpass": Wrapper("-f -d -p -P"),
    "pexec": Wrapper("-n -s -o -e -i -u -p -r -f -y"),
    "gtester": Wrapper("-k -o -m -p -s"),
    "start-stop-daemon": Wrapper("-n -u -g -p -c -d -N -P -I --name --user --pidfile", code="-x -a --exec --startas"),
    "daemonize": Wrapper("-a -c -e -o -p -l -u -E"),
    "parallel": Wrapper("-j -a -I -S --jobs --joblog --colsep -N"),
    "xargs": Wrapper("-a -I -n -P -L -d -E -s --arg-file --max-args --max-procs --delimiter"),
    "ansible-test": Wrapper(operands=1, shell="shell"),
    **dict.fromkeys(
        names("strace ltrace uftrace"),
        Wrapper("-o -e -p -s -u -a -b -l -n -w -x -A -D -F -I -O -P -S -X --output --trace"),
    ),
    "npx": Wrapper("-p --package", code="-c --call"),
    **dict.fromkeys(
        names(
            "unbuffer nohup setsid disown command builtin coproc busybox toybox ld.so catchsegv run-one entr"
            " proxychains torify distcc ccache grc valgrind latrace bunx caffeinate numactl cgexec"
        ),
        _PLAIN,
    ),
}

_SUBCOMMANDS: Final[tuple[tuple[str, str, Wrapper], ...]] = (
    # programs, the words before the command, and how the rest is read
    ("ip", "netns exec", Wrapper(operands=1)),
    ("ip", "vrf exec", Wrapper(operands=1)),
    ("bundle bundler yarn cabal stack opam gem", "exec", _PLAIN),
    ("npm pnpm", "exec", Wrapper("-p --package", code="-c --call")),
    ("pnpm", "dlx", _PLAIN),
    ("poetry pipenv hatch pdm", "run", _PLAIN),
    ("poetry pipenv hatch cdist", "shell", _shell("", 9)),
    ("uv", "tool run", _PLAIN),
    ("uv", "run", Wrapper("--with --python -p")),
    ("conda", "run", Wrapper("-n -p")),
    ("dotenv", "run", Wrapper("-f")),
    ("aws-vault", "exec", _shell("", 1)),
    ("git", "bisect run", _PLAIN),
    ("git", "submodule foreach", Wrapper(joins=True)),
    ("perf", "stat", Wrapper("-e -o -r -x")),
    ("perf", "trace", Wrapper("-e -o")),
    ("perf", "record", Wrapper("-e -o -F")),
    ("xterm konsole terminator lxterminal", "-e", _PLAIN),
    ("terminator gnome-terminal", "-x", _PLAIN),
    ("gnome-terminal", "--", _PLAIN),
    ("xdotool", "exec", _PLAIN),
    ("flatpak-spawn", "--host", _PLAIN),
    ("snap", "run", Wrapper(shell="--shell")),
)
SUBCOMMAND_WRAPPERS: Final = tuple(
    (names(programs), phrase.split(), wrapper) for programs, phrase, wrapper in _SUBCOMMANDS
)

CONTAINERS: Final = names("docker podman nerdctl ctr lxc kubectl oc crictl singularity apptainer")

LOOKERS: Final = names(
    "ls ll dir vdir stat test [ [[ echo printf apropos whatis which type whereis realpath readlink basename dirname pwd"
    " cd pushd popd du df tree exa eza lsattr getfacl locate alias unalias export declare local readonly typeset unset"
    " set true false : logger notify-send say pgrep ps id groups whoami who w lsof fuser findmnt mountpoint lsblk"
    " compgen hash umask wait jobs read trap return exit shift let tldr dpkg-query"
)
"""Their operands are names and messages: mentioning a file neither reads its content nor changes it."""

TEXT_TOOLS: Final = names(
    "grep egrep fgrep rg ag ack zgrep sed awk gawk mawk nawk tr cut sort uniq head tail cat less more nl wc diff cmp"
    " comm find fd jq yq xxd hexdump od strings nm objdump readelf chsh useradd usermod adduser getent cp mv ln rm"
    " touch mkdir chmod chown install git gh tee base64 curl wget md5sum sha1sum sha256sum sha512sum cksum b2sum ldd"
    " rpm dpkg file man info history help shellcheck xdg-open last"
)
"""A shell's path among their operands is text or a file, not a command; their command options have their own rules."""

MENTIONING: Final = LOOKERS | TEXT_TOOLS
"""What they are given is no command: neither a shell's path nor a socket of the shell."""

PATTERN_FIRST: Final = names("grep egrep fgrep rg ag ack zgrep")
"""The first operand is a pattern, not a file."""

MESSAGE_PROGRAMS: Final = names("git gh hg svn")
MESSAGE_OPTIONS: Final = names("-m --message --title --body -F --grep -S")
"""Options whose value is prose."""

CREDENTIAL_OWNERS: Final = names(
    "ssh scp sftp ssh-add ssh-keygen ssh-copy-id rsync git gh aws kubectl helm k9s docker gpg gcloud ansible"
    " ansible-playbook mosh autossh psql mysql chmod ls"
)
CREDENTIAL_OPTIONS: Final = names("-i -f -F --kubeconfig --config -c -e --private-key --key-file")
"""The programs that a user's keys belong to, and the options by which these are told of them."""

READERS: Final = names(
    "cat less more head tail grep egrep fgrep rg ag zgrep awk gawk mawk nawk sed cut sort uniq wc nl tac rev diff cmp"
    " comm find fd od xxd hexdump strings jq yq bat batcat zcat view column fold paste join tr base64 base32 getent"
    " source . python perl ruby node crontab systemctl service nginx sshd visudo systemd-analyze journalctl git cd for"
    " tar zip rsync scp cp mv file md5sum sha256sum man md5 sha1sum sha512sum fdisk smartctl mount umount fsck hdparm"
    " blkid parted lsblk df du dd rpm dpkg apt"
)
"""Naming a persistent place is reading it, unless a redirection, an operand or an option says otherwise."""

EDITORS: Final = names("nano pico vi vim nvim emacs ed ex gedit kate micro joe mcedit red rvim vipw jed jove ne")
REPLACES_CONTENT: Final = names("tee sponge patch shred truncate mkfs mkswap wipefs")
"""Every operand gets new content."""
CHANGES_FILE: Final = names(
    "touch rm rmdir unlink mkdir mknod mkfifo chmod chown chgrp chattr setfacl dos2unix bzip2 gzip xz"
)
"""Every operand is changed, but not filled with content of the caller's choice."""
REPLACES_LAST: Final = names("cp mv install ln rsync scp uniq lwp-download links strip objcopy exiftool ldconfig")
"""The last operand gets new content."""

OUTPUT_OPTIONS: Final = names(
    "-o -O --output --out --outfile --output-file --output-document --out-file --dest --destination --log-file"
    " --logfile --log --save --dump-file --to-file --target-directory --write --outputfile --report --export"
    " --directory-prefix -P -d --output-dir -fprintf -fprint -fls"
)

_TYPED_INTO_BARE: Final = names(
    "python perl ruby irb pry node jjs php lua tclsh wish R julia octave ghci clisp guile gnuplot scala jshell expect"
    " ocaml sbcl"
)
"""Programs that read what is typed next only when started without operands."""
_TYPED_INTO: Final = names(
    "gdb pdb ftp sftp lftp telnet tftp smbclient psftp ncftp mysql psql sqlite3 mongo redis-cli virsh bconsole vi vim"
    " nvim view rvim rview vimdiff ex ed red emacs nano pico less more most pg man info git journalctl systemctl dc bc"
    " top htop mail mutt minicom scanmem crash tdbtool tasksh msfconsole msfcli debugfs ispell nmap w3m lynx ranger"
    " perldoc screen tmux byebug cpan tdb asterisk volatility hping3 joe mtr aspell visudo terraform dosbox jtag opkg"
)
INTERACTIVE: Final = {**dict.fromkeys(_TYPED_INTO_BARE, "bare"), **dict.fromkeys(_TYPED_INTO, "any")}
"""Programs that read what is typed next: further lines of a listing are their input."""
