"""Options, settings and environment variables whose value a program runs as a command."""

from __future__ import annotations

import re
from typing import Final

from suites.command_guard.baselines.shell_patterns.rules.programs import names

_COMMAND_OPTIONS: Final = """
bsdtar: --use-compress-program
tar: -I --use-compress-program --to-command --rsh-command -F --info-script --new-volume-script --checkpoint-action
zip: -TT --unzip-command; cpio: --rsh-command; rsync: -e --rsh --rsync-path; sort: --compress-program; split: --filter
scp sftp: -S; sshuttle: -e --ssh-cmd; mosh: --ssh --server; borg: --rsh; restic: --password-command
duplicity: --rsync-options --ssh-options; fzf: --preview --bind; rg: --pre; bat batcat: --pager
man: -P --pager -H --html
git: --upload-pack --receive-pack --exec -x --extcmd --tree-filter --index-filter --msg-filter -O --open-files-in-pager
hg: --remotecmd --ssh -e; svn: --editor-cmd --diff-cmd --merge-cmd; cvs: -e; tcpdump: -z; dhclient: -sf; udhcpc: -s
openvpn: --up --down --route-up --route-pre-down --tls-verify --auth-user-pass-verify --client-connect --ipchange
pppd: connect disconnect pty init; dnsmasq: --dhcp-script --conf-script
aria2c: --on-download-complete --on-download-start --on-download-error --on-download-stop --on-bt-download-complete
yt-dlp youtube-dl: --exec --exec-before-download --downloader --external-downloader; wget: --use-askpass
certbot: --pre-hook --post-hook --deploy-hook --renew-hook --manual-auth-hook --manual-cleanup-hook
varnishd: -C; minicom: --script -S; mail mailx: --exec; sendmail: -C; exim: -be; apache2: -C; agetty: -l --login-program
telnetd: -L; dropbear: -c; gcc g++ cc clang: -wrapper --wrapper; rpm: --pipe; dpkg: --pre-invoke --post-invoke
pandoc: -F --filter -L --lua-filter --pdf-engine; enscript: -I --filter; latexmk: -e -r; go: -exec -toolexec
rustdoc: --runtool --test-runtool --test-builder; efax: -d; scrot: -e --exec; pidstat: -e; logrotate: -m --mail
screen: -s; tmux: -c; zathura: -c; ssh-add: -s; gnome-terminal: --command; valgrind: --db-command; run-mailcap: --action
"""


def _table(text: str) -> dict[str, frozenset[str]]:
    rows = (row.partition(":") for row in text.replace("\n", ";").split(";") if row.strip())
    return {program: names(values) for programs, _, values in rows for program in programs.split()}


COMMAND_OPTIONS: Final = _table(_COMMAND_OPTIONS)
"""Program -> its options that take a command line; an option not listed is not a command."""

SETTINGS: Final = re.compile(
    r"(?:^|-o|-c|--config=|\s)(?P<key>ProxyCommand|LocalCommand|KnownHostsCommand|ssh_command|sftp\.command"
    r"|core\.(?:pager|editor|sshcommand|fsmonitor|askpass|hookspath|gitproxy)|pager\.\w+"
    r"|sequence\.editor|diff\.external|credential\.helper|alias\.\w+|gpg\.program|protocol\.ext\.allow"
    r"|filter\.\w+\.(?:clean|smudge)|merge\.\w+\.driver|difftool\.\w+\.cmd|mergetool\.\w+\.cmd"
    r"|(?:APT|DPkg|Dpkg)::[\w:-]*(?:Pre|Post)-?(?:Invoke|Install-Pkgs)[\w-]*(?:::)?|APT::Changelogs[\w:-]*"
    r"|hooks\.[\w.-]+|ui\.editor|extensions\.\w+|alias\.\w+|kernel\.core_pattern|kernel\.modprobe)"
    r"(?:\s*[=\s]\s*(?P<value>.*))?$",
    re.IGNORECASE | re.DOTALL,
)
"""`key=value` or `key value` settings given on a command line, of ssh, git, apt, hg and sysctl, whose value is run."""
SETTING_PROGRAMS: Final = names(
    "ssh scp sftp rsync sshfs git apt apt-get aptitude dpkg hg sysctl ssh-copy-id check_by_ssh restic autossh slogin"
)

RUNS_FROM_ENVIRONMENT: Final = names(
    "PAGER MANPAGER GIT_PAGER SYSTEMD_PAGER LESSOPEN LESSCLOSE LESSSECURE EDITOR VISUAL GIT_EDITOR SUDO_EDITOR"
    " KUBE_EDITOR GIT_SEQUENCE_EDITOR FCEDIT HGEDITOR SVN_EDITOR GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND"
    " GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS RSYNC_RSH CVS_RSH BROWSER TERMINAL SHELL PERLDOC_PAGER"
    " PERLDOC MANOPT MANROFFSEQ PSQL_PAGER PSQL_EDITOR MYSQL_HISTFILE BASH_ENV PROMPT_COMMAND PS4 PERL5DB PERL5OPT"
    " PYTHONSTARTUP PYTHONINSPECT RUBYOPT AWS_PAGER DELTA_PAGER BAT_PAGER GH_PAGER LESSEDIT TAR_OPTIONS MAKEFLAGS"
    " COMP_WORDBREAKS PYTHONWARNINGS NODE_OPTIONS JAVA_TOOL_OPTIONS _JAVA_OPTIONS APT_CONFIG TCLLIBPATH GCC_EXEC_PREFIX"
    " CC CXX DIALOGRC ACLOCAL AUTOM4TE VIMINIT EXINIT"
)
RUNS_BY_NAME: Final = re.compile(r"\w*(?:PAGER|EDITOR|ASKPASS|_COMMAND|_CMD|_RSH|_HOOK)$")
"""The usual endings of variables that hold a command."""
LIBRARY_ENVIRONMENT: Final = names("LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES GCONV_PATH")
SEARCH_PATH_ENVIRONMENT: Final = names("PATH ENV LD_LIBRARY_PATH PYTHONPATH PERL5LIB RUBYLIB NODE_PATH")
HONEST_HELPERS: Final = names(
    "cat less more most bat batcat delta vi vim nvim nano pico emacs emacsclient code subl micro helix hx kak gedit"
    " kate joe ed true false : ssh autossh gzip pigz bzip2 pbzip2 xz zstd lz4 lzop brotli compress lzma store cache"
    " manager libsecret osxkeychain gpg gpg2 firefox chrome google-chrome chromium xdg-open ffmpeg curl wget aria2c bat"
    " head tail echo ls file tree sudo gcc g++ clang clang++ cc c++ ccache col diff-so-fancy meld vimdiff kdiff3 w3m"
    " lynx rsync nc pdflatex xelatex lualatex tectonic wkhtmltopdf git-credential-manager pandoc-citeproc"
    " pandoc-crossref make pytest npm cargo go grep rg sed sort wc jq"
)
"""Commands that people give to such options in honest work."""

_DANGEROUS: Final[tuple[tuple[str, str, str], ...]] = (
    # programs, pattern over the joined arguments, what they do then
    ("systemd-run", r"\S", "starts a program through the system manager"),
    ("busctl", r"unixexec:|StartTransientUnit", "starts a program through the bus"),
    ("systemctl", r"^(?:--\S+ )*(?:link|edit|set-environment|enable (?:--now )?/)", "registers a unit of the caller's"),
    ("service", r"^\.\./|/", "escapes the folder of services"),
    ("at", r"^(?!.*(?:-l|-c|-d|-r)\b)", "schedules commands for later"),
    ("batch", r"", "schedules commands for later"),
    ("crontab", r"^(?!\s*(?:-u \S+ )?-l\b)", "changes scheduled commands"),
    ("run-parts", r"\s/(?:usr/)?s?bin/?$", "runs the programs of a folder"),
    ("gcore", r"\S", "dumps the memory of a process"),
    ("nmap", r"--script[= ](?:\S*/|\S*\.nse)|--interactive", "runs a script of the caller's"),
    ("tshark wireshark", r"lua_script:", "runs a script of the caller's"),
    ("yum dnf", r"--enableplugin|-c \S", "loads a plugin of the caller's"),
    ("openssl", r"(?:^|\s)-?engine\s+\S*[./]|req .*-engine \S*/", "loads a library of the caller's"),
    ("ssh-keygen", r"(?:^|\s)-D\s+\S*\.\S*", "loads a library of the caller's"),
    ("python", r"(?:^|\s)-\w*m\s?pty\b", "opens a shell"),
    ("insmod", r"\S", "loads a kernel module"),
    ("sysctl", r"kernel\.(?:core_pattern|modprobe)\s*=", "makes the kernel run a program"),
    ("setcap", r"cap_\w+\+|\+\w*e|=\w*e", "gives a program capabilities"),
    ("chmod", r"(?:^|\s)(?:[ug+]*\+[rwx]*s|0?[2467][0-7]{3})(?:\s|$)", "makes a program run as its owner"),
    ("useradd", r"(?:^|\s)-o?u ?0\b", "creates a second root account"),
    (
        "usermod gpasswd",
        r"-a?G?\s*(?:\S* )?\S*(?:sudo|wheel|root|docker|admin)",
        "adds an account to the administrators",
    ),
    ("chpasswd", r"", "changes passwords"),
    (
        "fail2ban-client",
        r"\bset\b.*\baction(?:ban|unban|start|stop|check)\b",
        "registers a command that a service runs",
    ),
    ("whois", r"^(?=.*-h)(?=.*-p)", "is used as a channel to a chosen port"),
    ("finger", r"@(?:\d{1,3}\.){3}\d", "is used as a channel to a bare address"),
    (
        "docker podman nerdctl ctr lxc",
        r"-v\s*/:|--volume[= ]/:|(?:source|src)=/(?:,|\s|$)|privileged|--pid[= ]host|docker\.sock",
        "gives a container the host's root",
    ),
    ("kubectl oc", r"proxy .*--www|hostPID|hostPath|--overrides", "opens the host to a container"),
    (
        "tex latex pdftex pdflatex xetex xelatex luatex lualatex latexmk",
        r"-?-(?:shell-escape|enable-write18)|directlua|-latex=/",
        "lets a document run commands",
    ),
    (
        "rm",
        r"^(?=.*(?:^|\s)-\w*[rR])(?=.*\s(?:/|/\*|~/?|\$HOME|/(?:etc|usr|var|home|boot|lib|bin)/?\*?)(?:\s|$))"
        r"|--no-preserve-root",
        "deletes the system or a whole home",
    ),
    ("mkfs mkfs.ext4 mkfs.xfs mkfs.btrfs", r"/dev/", "formats a disk"),
    ("dmesg", r"-H|--human", "opens a pager that gives a shell"),
    ("mount", r"--?bind|-o \S*bind", "mounts one place over another"),
    ("sqlmap", r"--os-(?:shell|cmd|pwn)", "opens a shell through a database"),
    ("sshd", r"-o\s*\S*(?:AuthorizedKeysFile|ForceCommand)", "starts a login service of its own"),
    ("code", r"(?:^|\s)tunnel", "opens the machine to a remote editor"),
    ("tailscale", r"funnel|serve|up .*--ssh|file (?:cp|get)", "opens the machine to a remote network"),
    ("ngrok", r"\b(?:tcp|http|start)\b", "opens the machine to the internet"),
    ("mosh-server", r"\bnew\b", "starts a remote shell service"),
    ("tmate telnetd ttyd gotty", r"", "shares a terminal with remote machines"),
    ("msfconsole msfvenom", r"", "is an exploitation framework"),
)
DANGEROUS: Final = tuple((names(programs), re.compile(pattern), what) for programs, pattern, what in _DANGEROUS)
"""Invocations that are dangerous whatever else the command holds."""

_INSTALLS: Final = r"\b(?:install|localinstall|remove|erase|purge|full-upgrade|dist-upgrade|add|del)\b"
UNUSUAL: Final[dict[str, str]] = {
    **dict.fromkeys(names("apt apt-get dnf yum zypper apk snap opkg pkg gem"), _INSTALLS),
    **dict.fromkeys(
        names(
            "useradd usermod passwd setenforce shutdown reboot poweroff halt mkfs shred tcpdump nmap masscan hydra john"
            " hashcat xmodmap visudo easy_install"
        ),
        "",
    ),
    "pacman": r"-[SUR]",
    "dpkg": r"(?:^|\s)(?:-i|--install|-r|-P)\b",
    "rpm": r"(?:^|\s)-\w*[iUe]\w*\b",
    "pip": r"--(?:extra-)?index-url|https?://(?!pypi)|git\+",
    "iptables": r"-[FDAIP]",
    "ufw": r"\b(?:disable|allow|reset)\b",
    "fdisk": r"^(?!-l)",
    "parted": r"",
    "history": r"-c",
    "strace": r"-p",
    "gdb": r"-p|--pid|attach",
}
"""Dual-use invocations: worth a warning, not a refusal."""

OPENS_SHELL: Final[dict[str, str]] = {
    # program -> pattern over the joined arguments with which it does NOT open a new shell
    "screen": r"-ls|-list|-wipe|-[rRxdDX]\b|-v",
    "tmux": r"\b(?:ls|list-\w+|attach|a|attach-session|kill-\w+|has-session|-V|source-file|send-keys|switch\w*|info)\b",
    "byobu": r"-ls|--version",
    "zellij": r"\b(?:ls|list-sessions|attach|--version)\b",
    "msfconsole": r"--version",
}
