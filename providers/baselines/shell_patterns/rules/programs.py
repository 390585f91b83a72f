"""What programs are: shells, wrappers that run the rest of their line, tools that only look, and tools that write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


def names(text: str) -> frozenset[str]:
    """A set of names written as one string."""
    return frozenset(text.split())


SHELLS: Final = names(
    "sh bash dash ash zsh ksh ksh93 mksh lksh pdksh csh tcsh fish posh yash elvish rbash rksh rzsh sash hush xonsh nu pwsh powershell oksh scsh rc es"
)
SHELL_VALUES: Final = names("-o +o -O +O --rcfile --init-file")
"""Shell options that take the next word."""

VERSION_FLAGS: Final = names("--version --help -V -h -? help version")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the rest of its line as a command.

    `values` are options that take the next word, `operands` is how many words stand before the command, `code` are
    options whose value is shell code, `shell` are options that ask for a shell, `bare_shell` says that it starts
    a shell when no command is left, and `marker` is a word after which the command begins.
    """

    values: frozenset[str] = frozenset()
    operands: int = 0
    code: frozenset[str] = frozenset()
    shell: frozenset[str] = frozenset()
    bare_shell: bool = False
    marker: str = ""
    joins: bool = False
    """The command is one string of shell code when it comes as several words."""
    privileged: bool = False


def _wrapper(
    values: str = "",
    operands: int = 0,
    *,
    code: str = "",
    shell: str = "",
    bare: bool = False,
    marker: str = "",
    joins: bool = False,
    privileged: bool = False,
) -> Wrapper:
    return Wrapper(names(values), operands, names(code), names(shell), bare, marker, joins, privileged)


_PLAIN: Final = _wrapper()

WRAPPERS: Final[dict[str, Wrapper]] = {
    # other users and other roots
    "sudo": _wrapper("-u -g -h -p -C -D -R -T -U -r -t --user --group --prompt --host", shell="-i -s --login --shell", privileged=True),
    "doas": _wrapper("-u -C -a", shell="-s", privileged=True),
    "pkexec": _wrapper("--user", bare=True, privileged=True),
    "su": _wrapper("-s -g -G -w --shell --group", 1, code="-c --command", bare=True, privileged=True),
    "runuser": _wrapper("-u -g -G -s", 0, code="-c --command", bare=True, privileged=True),
    "ksu": _wrapper("-n -c", 0, code="-e -a", bare=True, privileged=True),
    "sg": _wrapper("", 1, code="-c", bare=True),
    "newgrp": _wrapper("", 9, bare=True),
    "chroot": _wrapper("", 1, bare=True, privileged=True),
    "arch-chroot": _wrapper("-u", 1, bare=True, privileged=True),
    "systemd-nspawn": _wrapper("-D -M -u -i", bare=True, privileged=True),
    "arch-nspawn": _wrapper("-C -M -c -f", 1, bare=True, privileged=True),
    "unshare": _wrapper("-S -G -R -w --setuid --setgid --root --wd --propagation", bare=True),
    "nsenter": _wrapper("-t -S -G --target --setuid --setgid", bare=True, privileged=True),
    "capsh": _wrapper("", 0, bare=True, marker="--"),
    "firejail": _wrapper("", bare=True),
    "bwrap": _wrapper("--bind --ro-bind --dev --proc --tmpfs --chdir --setenv --symlink", bare=True),
    "fakeroot": _wrapper("-l -s -i -b", bare=True),
    "proot": _wrapper("-r -b -w -q -R -S", bare=True),
    "aa-exec": _wrapper("-p -n --profile --namespace", bare=True),
    "setpriv": _wrapper("--reuid --regid --groups --inh-caps --bounding-set"),
    "runcon": _wrapper("-u -r -t -l", 1),
    # priority, limits, time, streams
    "env": _wrapper("-u -C --unset --chdir", code="-S --split-string"),
    "timeout": _wrapper("-s -k --signal --kill-after", 1),
    "nice": _wrapper("-n --adjustment"),
    "ionice": _wrapper("-c -n --class --classdata"),
    "chrt": _wrapper("-T -P -D", 1),
    "taskset": _wrapper("", 1),
    "choom": _wrapper("-n -p"),
    "prlimit": _wrapper("-p -o"),
    "softlimit": _wrapper("-m -d -s -l -a -o -p -f -c -r -t"),
    "chpst": _wrapper("-u -U -b -e -/ -C -n -l -L -m -d -o -p -f -c"),
    "setlock": _wrapper("", 1),
    "flock": _wrapper("-w -E --timeout", 1, code="-c --command"),
    "cpulimit": _wrapper("-l -p -e --limit --exe --pid"),
    "time": _wrapper("-f -o --format --output"),
    "multitime": _wrapper("-f -i -I -n -o -r -s"),
    "stdbuf": _wrapper("-i -o -e --input --output --error"),
    "unbuffer": _PLAIN,
    "nohup": _PLAIN,
    "setsid": _PLAIN,
    "disown": _PLAIN,
    "exec": _wrapper("-a"),
    "command": _PLAIN,
    "builtin": _PLAIN,
    "coproc": _PLAIN,
    "busybox": _PLAIN,
    "toybox": _PLAIN,
    "setarch": _wrapper("", 1, bare=True),
    "linux32": _wrapper(bare=True),
    "linux64": _wrapper(bare=True),
    "i386": _wrapper(bare=True),
    "x86_64": _wrapper(bare=True),
    "cgexec": _wrapper("-g"),
    "numactl": _wrapper("-C -m -N -l -p"),
    "ld.so": _PLAIN,
    "faketime": _wrapper("", 1),
    "catchsegv": _PLAIN,
    "caffeinate": _wrapper("-t -w"),
    "run-one": _PLAIN,
    "entr": _PLAIN,
    "watch": _wrapper("-n --interval", joins=True),
    "script": _wrapper("-T -o -t -I -O -B -m --logging-format", code="-c --command", bare=True, operands=9),
    "rlwrap": _wrapper("-b -f -H -l -m -p -s -t -w -z -C -D -g -O -P -q -S"),
    "xvfb-run": _wrapper("-n -s -f -e -p"),
    "dbus-run-session": _wrapper("", marker="--"),
    "openvt": _wrapper("-c", marker="--"),
    "ssh-agent": _wrapper("-a -t -E -O"),
    "expect-lite": _PLAIN,
    "proxychains": _wrapper("-f"),
    "proxychains4": _wrapper("-f"),
    "torsocks": _wrapper("-u -p -P"),
    "torify": _PLAIN,
    "sshpass": _wrapper("-f -d -p -P"),
    "distcc": _PLAIN,
    "ccache": _PLAIN,
    "grc": _wrapper("-c --config"),
    "pexec": _wrapper("-n -s -o -e -i -u -p -r -f -y"),
    "gtester": _wrapper("-k -o -m -p -s"),
    "start-stop-daemon": _wrapper("-n -u -g -p -c -d -N -P -I --name --user --pidfile --chuid", code="-x -a --exec --startas"),
    "daemonize": _wrapper("-a -c -e -o -p -l -u -E"),
    "parallel": _wrapper("-j -a -I -S --jobs --joblog --colsep -N"),
    "xargs": _wrapper("-a -I -n -P -L -d -E -s --arg-file --replace --max-args --max-procs --delimiter"),
    "run-parts": _wrapper("", 9),
    "ansible-test": _wrapper("", 1, shell="shell"),
    # tracers
    "strace": _wrapper("-o -e -p -s -u -a -b -I -O -S -P -X --output --trace"),
    "ltrace": _wrapper("-o -e -p -s -u -a -A -D -F -l -n -w -x"),
    "valgrind": _PLAIN,
    "perf": _wrapper("-e -p -o -F -C", 1),
    "uftrace": _wrapper("-d", 1),
    "latrace": _PLAIN,
    # environments of language tools; the word before the command is the subcommand, see SUBCOMMAND_WRAPPERS
    "npx": _wrapper("-p --package", code="-c --call"),
    "bunx": _PLAIN,
    "gem-exec": _PLAIN,
}

SUBCOMMAND_WRAPPERS: Final[dict[str, dict[str, Wrapper]]] = {
    "ip": {"netns exec": _wrapper("", 1), "vrf exec": _wrapper("", 1)},
    "bundle": {"exec": _PLAIN},
    "bundler": {"exec": _PLAIN},
    "poetry": {"run": _PLAIN},
    "pipenv": {"run": _PLAIN, "shell": _wrapper(bare=True)},
    "uv": {"run": _wrapper("--with --python -p"), "tool run": _PLAIN},
    "conda": {"run": _wrapper("-n -p")},
    "npm": {"exec": _wrapper("-p --package", code="-c --call")},
    "pnpm": {"exec": _PLAIN, "dlx": _PLAIN},
    "yarn": {"exec": _PLAIN},
    "cabal": {"exec": _PLAIN},
    "stack": {"exec": _PLAIN},
    "opam": {"exec": _PLAIN},
    "dotenv": {"run": _wrapper("-f")},
    "aws-vault": {"exec": _wrapper("", 1, bare=True)},
    "git": {"bisect run": _PLAIN, "submodule foreach": _wrapper(joins=True)},
    "perf": {"stat": _wrapper("-e -o -r -x"), "trace": _wrapper("-o -e"), "record": _wrapper("-e -o -F")},
    "sem": {"": _PLAIN},
    "cdist": {"shell": _wrapper(bare=True, operands=9)},
    "terminator": {"-x": _PLAIN},
    "xterm": {"-e": _PLAIN},
    "gnome-terminal": {"--": _PLAIN},
    "konsole": {"-e": _PLAIN},
    "xdotool": {"exec": _wrapper("", marker="")},
    "flatpak-spawn": {"--host": _PLAIN},
    "snap": {"run": _wrapper(shell="--shell")},
    "systemd-inhibit": {"": _PLAIN},
    "loginctl": {},
}

CONTAINERS: Final = names("docker podman nerdctl ctr lxc kubectl oc crictl singularity apptainer")

LOOKERS: Final = names(
    "ls ll dir vdir stat test [ [[ echo printf apropos whatis which type whereis realpath readlink basename dirname pwd cd pushd popd du df tree exa eza"
    " lsattr getfacl locate alias unalias export declare local readonly typeset unset set true false : logger notify-send say pgrep ps id groups whoami who w"
    " lsof fuser findmnt mountpoint lsblk compgen hash umask wait jobs read trap return exit shift let tldr dpkg-query"
)
"""Their operands are names and messages: mentioning a file neither reads its content nor changes it."""

TEXT_TOOLS: Final = names(
    "grep egrep fgrep rg ag ack zgrep sed awk gawk mawk nawk tr cut sort uniq head tail cat less more nl wc diff cmp comm find fd jq yq xxd"
    " hexdump od strings nm objdump readelf chsh useradd usermod adduser getent cp mv ln rm touch mkdir chmod chown install git gh tee base64 curl wget"
    " md5sum sha1sum sha256sum sha512sum cksum b2sum ldd rpm dpkg file man info history help shellcheck xdg-open last"
)
"""A shell's path among their operands is text or a file, not a command; their own command options have rules of their own."""

PATTERN_FIRST: Final = names("grep egrep fgrep rg ag ack zgrep")
"""The first operand is a pattern, not a file."""

MESSAGE_PROGRAMS: Final = names("git gh hg svn")
MESSAGE_OPTIONS: Final = names("-m --message --title --body -F --grep -S")
"""Options whose value is prose."""

CREDENTIAL_OWNERS: Final = names(
    "ssh scp sftp ssh-add ssh-keygen ssh-copy-id rsync git gh aws kubectl helm k9s docker gpg gcloud ansible ansible-playbook mosh autossh psql mysql chmod ls"
)
CREDENTIAL_OPTIONS: Final = names("-i -f -F --kubeconfig --config -c -e --private-key --key-file")
"""The programs that a user's keys belong to, and the options by which these are told of them."""

READERS: Final = names(
    "cat less more head tail grep egrep fgrep rg ag zgrep awk gawk mawk nawk sed cut sort uniq wc nl tac rev diff cmp comm find fd od xxd hexdump strings"
    " jq yq bat batcat zcat view column fold paste join tr base64 base32 getent source . python perl ruby node crontab systemctl service nginx sshd visudo"
    " systemd-analyze journalctl git cd for tar zip rsync scp cp mv file md5sum sha256sum man md5 sha1sum sha512sum fdisk smartctl mount umount fsck"
    " hdparm blkid parted lsblk df du dd rpm dpkg apt"
)
"""Naming a persistent place is reading it, unless a redirection, an operand or an option says otherwise."""

EDITORS: Final = names("nano pico vi vim nvim emacs ed ex gedit kate micro joe mcedit red rvim vipw jed jove ne")
REPLACES_CONTENT: Final = names("tee sponge patch shred truncate mkfs mkswap wipefs")
"""Every operand gets new content."""
CHANGES_FILE: Final = names("touch rm rmdir unlink mkdir mknod mkfifo chmod chown chgrp chattr setfacl dos2unix bzip2 gzip xz")
"""Every operand is changed, but not filled with content of the caller's choice."""
REPLACES_LAST: Final = names("cp mv install ln rsync scp uniq lwp-download links strip objcopy exiftool ldconfig")
"""The last operand gets new content."""

OUTPUT_OPTIONS: Final = names(
    "-o -O --output --out --outfile --output-file --output-document --out-file --dest --destination --log-file --logfile --log --save --dump-file"
    " --to-file --target-directory --write --outputfile --report --export --directory-prefix -P -d --output-dir -fprintf -fprint -fls"
)

INTERACTIVE: Final[dict[str, str]] = {
    # program -> "bare": only when started without operands; "any": whatever it opened
    **dict.fromkeys(names("python perl ruby irb pry node jjs php lua tclsh wish R julia octave ghci clisp guile gnuplot scala jshell expect ocaml sbcl"), "bare"),
    **dict.fromkeys(names("gdb pdb ftp sftp lftp telnet tftp smbclient psftp ncftp mysql psql sqlite3 mongo redis-cli virsh bconsole"), "any"),
    **dict.fromkeys(names("vi vim nvim view rvim rview vimdiff ex ed red emacs nano pico less more most pg man info git journalctl systemctl"), "any"),
    **dict.fromkeys(names("dc bc top htop mail mutt minicom scanmem crash tdbtool tasksh msfconsole msfcli debugfs ispell nmap w3m lynx ranger"), "any"),
    **dict.fromkeys(names("perldoc screen tmux byebug cpan tdb asterisk volatility hping3 joe mtr aspell visudo terraform dosbox jtag opkg"), "any"),
}
"""Programs that read what is typed next: further lines of a listing are their input."""
