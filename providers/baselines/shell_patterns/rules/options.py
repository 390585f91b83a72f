"""Options, settings and environment variables whose value a program runs as a command."""

from __future__ import annotations

import re
from typing import Final

from providers.baselines.shell_patterns.rules.programs import names

COMMAND_OPTIONS: Final[dict[str, str]] = {
    # archives, copying, searching
    "tar": "-I --use-compress-program --to-command --rsh-command -F --info-script --new-volume-script --checkpoint-action",
    "bsdtar": "--use-compress-program",
    "zip": "-TT --unzip-command",
    "cpio": "--rsh-command",
    "rsync": "-e --rsh --rsync-path",
    "sort": "--compress-program",
    "split": "--filter",
    "scp": "-S",
    "sftp": "-S",
    "sshfs": "-o",
    "sshuttle": "-e --ssh-cmd",
    "mosh": "--ssh --server",
    "borg": "--rsh",
    "restic": "--password-command -o",
    "duplicity": "--rsync-options --ssh-options",
    "fzf": "--preview --bind",
    "rg": "--pre",
    "bat": "--pager",
    "batcat": "--pager",
    "man": "-P --pager -H --html",
    "less": "--lesskey-src",
    "git": "--upload-pack --receive-pack --exec -x --extcmd --tree-filter --index-filter --msg-filter --open-files-in-pager -O --exec-path",
    "hg": "--remotecmd --ssh -e",
    "svn": "--editor-cmd --diff-cmd --merge-cmd",
    "cvs": "-e",
    # network tools
    "tcpdump": "-z",
    "openvpn": "--up --down --route-up --route-pre-down --tls-verify --auth-user-pass-verify --client-connect --learn-address --ipchange",
    "pppd": "connect disconnect pty init",
    "dnsmasq": "--dhcp-script --conf-script",
    "dhclient": "-sf",
    "udhcpc": "-s --script",
    "aria2c": "--on-download-complete --on-download-start --on-download-error --on-download-stop --on-download-pause --on-bt-download-complete",
    "yt-dlp": "--exec --exec-before-download --downloader --external-downloader",
    "youtube-dl": "--exec",
    "wget": "--use-askpass",
    "certbot": "--pre-hook --post-hook --deploy-hook --renew-hook --manual-auth-hook --manual-cleanup-hook",
    "varnishd": "-C",
    "minicom": "--script -S",
    "sqlmap": "--eval",
    "mail": "--exec",
    "mailx": "--exec",
    "sendmail": "-C",
    "exim": "-be",
    "apache2": "-C",
    "agetty": "-l --login-program",
    "telnetd": "-L",
    "dropbear": "-c",
    # builds, packages, documents
    "make": "--eval",
    "gcc": "-wrapper --wrapper",
    "g++": "-wrapper --wrapper",
    "cc": "-wrapper",
    "clang": "-wrapper",
    "rpm": "--pipe",
    "dpkg": "--pre-invoke --post-invoke",
    "pandoc": "-F --filter -L --lua-filter --pdf-engine",
    "enscript": "-I --filter",
    "latexmk": "-e -r",
    "go": "-exec -toolexec",
    "rustdoc": "--runtool --test-runtool --test-builder",
    "ctest": "--build-makeprogram",
    "efax": "-d",
    "scrot": "-e --exec",
    "pidstat": "-e",
    "logrotate": "--mail -m",
    "screen": "-s",
    "tmux": "-c",
    "zathura": "-c",
    "code": "--extensionDevelopmentPath",
    "ssh-keygen": "-D",
    "ssh-add": "-s",
    "xterm": "-e",
    "gnome-terminal": "-e --command",
    "konsole": "-e",
    "terminator": "-e -x",
    "valgrind": "--xml-user-comment --db-command",
    "run-mailcap": "--action",
    "genie": "-c",
    "lxterminal": "-e",
    "x-terminal-emulator": "-e",
}
"""Program -> its options that take a command line; an option not listed is not a command."""

SETTINGS: Final = re.compile(
    r"(?:^|-o|-c|--config=|\s)(?P<key>ProxyCommand|LocalCommand|KnownHostsCommand|ssh_command|sftp\.command|core\.(?:pager|editor|sshcommand|fsmonitor|askpass|hookspath|gitproxy)|pager\.\w+"
    r"|sequence\.editor|diff\.external|credential\.helper|alias\.\w+|gpg\.program|protocol\.ext\.allow|filter\.\w+\.(?:clean|smudge)|merge\.\w+\.driver|difftool\.\w+\.cmd|mergetool\.\w+\.cmd"
    r"|(?:APT|DPkg|Dpkg)::[\w:-]*(?:Pre|Post)-?(?:Invoke|Install-Pkgs)[\w-]*(?:::)?|APT::Changelogs[\w:-]*|hooks\.[\w.-]+|ui\.editor|extensions\.\w+|alias\.\w+|kernel\.core_pattern|kernel\.modprobe)"
    r"(?:\s*[=\s]\s*(?P<value>.*))?$",
    re.IGNORECASE | re.DOTALL,
)
"""`key=value` or `key value` settings given on a command line, of ssh, git, apt, hg and sysctl, whose value is run."""
SETTING_PROGRAMS: Final = names("ssh scp sftp rsync sshfs git apt apt-get aptitude dpkg hg sysctl ssh-copy-id check_by_ssh restic autossh slogin")

RUNS_FROM_ENVIRONMENT: Final = names(
    "PAGER MANPAGER GIT_PAGER SYSTEMD_PAGER LESSOPEN LESSCLOSE LESSSECURE EDITOR VISUAL GIT_EDITOR SUDO_EDITOR KUBE_EDITOR GIT_SEQUENCE_EDITOR FCEDIT HGEDITOR SVN_EDITOR"
    " GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS RSYNC_RSH CVS_RSH BROWSER TERMINAL SHELL"
    " PERLDOC_PAGER PERLDOC MANOPT MANROFFSEQ PSQL_PAGER PSQL_EDITOR MYSQL_HISTFILE BASH_ENV PROMPT_COMMAND PS4 PERL5DB PERL5OPT PYTHONSTARTUP PYTHONINSPECT RUBYOPT"
    " AWS_PAGER DELTA_PAGER BAT_PAGER GH_PAGER LESSEDIT TAR_OPTIONS MAKEFLAGS COMP_WORDBREAKS PYTHONWARNINGS NODE_OPTIONS JAVA_TOOL_OPTIONS _JAVA_OPTIONS APT_CONFIG"
    " TCLLIBPATH GCC_EXEC_PREFIX CC CXX DIALOGRC ACLOCAL AUTOM4TE VIMINIT EXINIT"
)
RUNS_BY_NAME: Final = re.compile(r"\w+_(?:COMMAND|CMD|PAGER|EDITOR|ASKPASS|RSH|HOOK)$")
"""The usual endings of variables that hold a command."""
LIBRARY_ENVIRONMENT: Final = names("LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES GCONV_PATH")
SEARCH_PATH_ENVIRONMENT: Final = names("PATH ENV LD_LIBRARY_PATH PYTHONPATH PERL5LIB RUBYLIB NODE_PATH")
HONEST_HELPERS: Final = names(
    "cat less more most bat batcat delta vi vim nvim nano pico emacs emacsclient code subl micro helix hx kak gedit kate joe ed true false : ssh autossh gzip pigz"
    " bzip2 pbzip2 xz zstd lz4 lzop brotli compress lzma store cache manager libsecret osxkeychain gpg gpg2 firefox chrome google-chrome chromium xdg-open"
    " ffmpeg curl wget aria2c bat head tail echo ls file tree sudo gcc g++ clang clang++ cc c++ ccache col diff-so-fancy meld vimdiff kdiff3 w3m lynx rsync nc"
    " pdflatex xelatex lualatex tectonic wkhtmltopdf git-credential-manager pandoc-citeproc pandoc-crossref make pytest npm cargo go grep rg sed sort wc jq"
)
"""Commands that people give to such options in honest work."""

DANGEROUS_FLAGS: Final[tuple[tuple[str, str, str], ...]] = (
    # program, pattern over the joined arguments, what it does
    ("systemd-run", r"\S", "starts a program through the system manager"),
    ("run-mailcap", r"--action", "runs a handler through mailcap"),
    ("gcore", r"\S", "dumps the memory of a process"),
    ("at", r"^(?!.*(?:-l|-c|-d|-r)\b)", "schedules commands for later"),
    ("batch", r"", "schedules commands for later"),
    ("crontab", r"^(?!\s*(?:-u \S+ )?-l\b)", "changes scheduled commands"),
    ("systemctl", r"^(?:--\S+ )*(?:link|edit|set-environment|enable (?:--now )?/)", "registers a unit with the system manager"),
    ("busctl", r"unixexec:|StartTransientUnit", "starts a program through the bus"),
    ("service", r"^\.\./|/", "escapes the folder of services"),
    ("nmap", r"--script[= ](?:\S*/|\S*\.nse)|--interactive", "runs a script of its own choice inside nmap"),
    ("tshark", r"lua_script:", "runs a Lua script"),
    ("wireshark", r"lua_script:", "runs a Lua script"),
    ("yum", r"--enableplugin|-c \S|--noplugins -c", "loads a plugin of its own choice"),
    ("openssl", r"(?:^|\s)-?engine\s+\S*[./]|req .*-engine \S*/", "loads a library of its own choice"),
    ("ssh-keygen", r"(?:^|\s)-D\s+\S*\.\S*", "loads a library of its own choice"),
    ("insmod", r"\S", "loads a kernel module"),
    ("modprobe", r"-C|\./", "loads a kernel module from a chosen place"),
    ("setcap", r"cap_\w+\+|\+\w*e|=\w*e", "gives a program capabilities"),
    ("chmod", r"(?:^|\s)(?:[ug+]*\+[rwx]*s|[2467][0-7]{3}|0[2467][0-7]{3})(?:\s|$)", "makes a program run as its owner"),
    ("chattr", r"[-+]i\b.*/etc/", "locks or unlocks a system file"),
    ("useradd", r"-o\b.*-u ?0|-ou ?0|-u 0", "creates a second root account"),
    ("usermod", r"-a?G\s*\S*(?:sudo|wheel|root|docker|admin)", "adds an account to a group of administrators"),
    ("gpasswd", r"-a \S+ (?:sudo|wheel|root|docker)", "adds an account to a group of administrators"),
    ("chpasswd", r"", "changes passwords"),
    ("docker", r"-v\s*/:|--volume[= ]/:|source=/,|--privileged|--pid[= ]host|docker\.sock", "gives a container the host's root"),
    ("podman", r"-v\s*/:|--volume[= ]/:|--privileged|--pid[= ]host", "gives a container the host's root"),
    ("nerdctl", r"-v\s*/:|--privileged", "gives a container the host's root"),
    ("ctr", r"--mount \S*src=/,|--privileged", "gives a container the host's root"),
    ("lxc", r"source=/(?:\s|$)|security\.privileged=true", "gives a container the host's root"),
    ("kubectl", r"proxy .*--www|hostPID|hostPath|--overrides", "gives a container the host's root, or serves its files"),
    ("pdflatex", r"-?-(?:shell-escape|enable-write18)", "lets a document run commands"),
    ("latex", r"-?-(?:shell-escape|enable-write18)", "lets a document run commands"),
    ("xelatex", r"-?-(?:shell-escape|enable-write18)", "lets a document run commands"),
    ("lualatex", r"-?-shell-escape|directlua", "lets a document run commands"),
    ("tex", r"-?-(?:shell-escape|enable-write18)", "lets a document run commands"),
    ("latexmk", r"shell-escape|-latex='?/", "lets a document run commands"),
    ("rm", r"^(?=.*(?:^|\s)-\w*[rR])(?=.*(?:\s(?:/|/\*|~|~/|\$HOME|/(?:etc|usr|var|home|boot|lib|bin)/?\*?)(?:\s|$)))|--no-preserve-root", "deletes the system or a whole home"),
    ("mkfs", r"/dev/", "formats a disk"),
    ("mkfs.ext4", r"/dev/", "formats a disk"),
    ("mkfs.xfs", r"/dev/", "formats a disk"),
    ("dd", r"\bof=/dev/(?:sd|nvme|vd|hd|xvd|mmcblk|disk|k?mem)", "overwrites a disk"),
    ("dmesg", r"-H|--human", "opens a pager that gives a shell"),
    ("mount", r"--?bind|-o \S*bind", "mounts one place over another"),
    ("sysctl", r"kernel\.(?:core_pattern|modprobe)\s*=", "makes the kernel run a program"),
    ("msfconsole", r"", "starts an exploitation framework"),
    ("msfvenom", r"", "builds an exploit payload"),
    ("sqlmap", r"--os-(?:shell|cmd|pwn)", "opens a shell through a database"),
    ("sshd", r"-o\s*\S*(?:AuthorizedKeysFile|ForceCommand)", "starts a login service of its own"),
    ("code", r"(?:^|\s)tunnel", "opens the machine to a remote editor"),
    ("tailscale", r"(?:funnel|serve|up .*--ssh|file (?:cp|get))", "opens the machine to a remote network"),
    ("ngrok", r"\b(?:tcp|http|start)\b", "opens the machine to the internet"),
    ("tmate", r"", "shares a terminal with a remote server"),
    ("mosh-server", r"\bnew\b", "starts a remote shell service"),
    ("telnetd", r"", "starts a remote shell service"),
    ("ttyd", r"", "starts a remote shell service"),
    ("gotty", r"", "starts a remote shell service"),
)
"""Invocations that need no other look; the first program name decides whether the pattern is tried."""

UNUSUAL: Final[dict[str, str]] = {
    "apt": r"\b(?:install|remove|purge|full-upgrade)\b",
    "apt-get": r"\b(?:install|remove|purge|dist-upgrade)\b",
    "dnf": r"\b(?:install|localinstall|remove|erase)\b",
    "yum": r"\b(?:install|localinstall|remove|erase)\b",
    "pacman": r"-[SUR]",
    "zypper": r"\b(?:install|in|remove)\b",
    "apk": r"\b(?:add|del)\b",
    "snap": r"\b(?:install|remove)\b",
    "dpkg": r"(?:^|\s)(?:-i|--install|-r|-P)\b",
    "rpm": r"(?:^|\s)-\w*[iUe]\w*\b",
    "useradd": r"",
    "usermod": r"",
    "passwd": r"",
    "iptables": r"-[FDAIP]",
    "ufw": r"\b(?:disable|allow|reset)\b",
    "setenforce": r"",
    "kill": r"-9 -1\b",
    "shutdown": r"",
    "reboot": r"",
    "poweroff": r"",
    "halt": r"",
    "mkfs": r"",
    "fdisk": r"^(?!-l)",
    "parted": r"",
    "history": r"-c",
    "shred": r"",
    "tcpdump": r"",
    "strace": r"-p",
    "gdb": r"-p|--pid|attach",
    "nmap": r"",
    "masscan": r"",
    "hydra": r"",
    "john": r"",
    "hashcat": r"",
    "xmodmap": r"",
    "visudo": r"",
    "gem": r"\binstall\b",
    "easy_install": r"",
}
"""Dual-use invocations: worth a warning, not a refusal."""

OPENS_SHELL: Final[dict[str, str]] = {
    # program -> pattern over the joined arguments with which it does NOT open a new shell
    "screen": r"-ls|-list|-wipe|-[rRxdDX]\b|-v",
    "tmux": r"\b(?:ls|list-\w+|attach|a|attach-session|kill-\w+|has-session|-V|source-file|send-keys|switch\w*|display\w*|info)\b",
    "byobu": r"-ls|--version",
    "zellij": r"\b(?:ls|list-sessions|attach|--version)\b",
    "msfconsole": r"--version",
}

_COMPILED: Final[dict[str, list[tuple[re.Pattern[str], str]]]] = {}
for _name, _pattern, _what in DANGEROUS_FLAGS:
    _COMPILED.setdefault(_name, []).append((re.compile(_pattern), _what))


def dangerous(name: str) -> list[tuple[re.Pattern[str], str]]:
    """The dangerous invocations of a program: pattern over its joined arguments, and what it does then."""
    return _COMPILED.get(name, [])
