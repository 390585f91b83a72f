"""Tools with a language of their own: how code gets in, and what in that code runs commands or opens connections."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Language:
    """What is searched in code."""

    executes: re.Pattern[str]
    connects: re.Pattern[str]
    fetches: re.Pattern[str]
    obscures: re.Pattern[str]


_NEVER: Final = r"(?!)"
"""What is found nowhere, for a language that has no such thing."""


def _language(executes: str, connects: str = _NEVER, fetches: str = _NEVER, obscures: str = _NEVER) -> Language:
    return Language(*(re.compile(pattern, re.MULTILINE) for pattern in (executes, connects, fetches, obscures)))


LANGUAGES: Final[dict[str, Language]] = {
    "python": _language(
        r"\bos\s*\.\s*(?:system|popen|exec[lv]p?e?|spawn\w*|posix_spawn\w*|startfile|dup2)\b"
        r"|\bsubprocess\b|\bpty\s*\.\s*spawn|\bpopen\s*\(|\bcommands\.get|\bfrom\s+os\s+import\b"
        r"|\bctypes\b|\bimport\s+os\s+as\b|__import__\(\s*['\"](?:os|pty|subprocess)|\bfrom\s+pty\s+import\b|(?<![\w.])system\s*\(|\bplatform\.popen|\bpdb\b.*!"
        r"|code\.interact",
        connects=r"\bsocket\s*\(|socket\.(?:create_connection|socket)|\bsocketserver\b|\basyncore\b|\bftplib\b"
        r"|\bsmtplib\b|\btelnetlib\b|\bparamiko\b|http\.server|HTTPServer|asyncio\.open_connection",
        fetches=r"\burlretrieve\b|\burlopen\b|\brequests\.(?:get|post|put)\b|\bhttp\.client\b|\burllib\d?\b|\bhttpx\b",
        obscures=r"\b(?:exec|eval|__import__|compile)\s*\(|\b(?:b64decode|fromhex|unhexlify|marshal\.loads"
        r"|pickle\.loads|decompress)\b|getattr\s*\(\s*__",
    ),
    "perl": _language(
        r"(?<![\w$>@%])(?:exec|system|readpipe|syscall)\b|`[^`]+`|\bqx\b"
        r"|\bopen\w*\s*\(?[^;]{0,80}(?:[\"']\s*\||\|\s*[\"']|[\"']-\||[\"']\|-)|\bPOSIX\b.*\bdup2\b"
        r"|\bIPC::",
        connects=r"\bSocket\b|\bIO::Socket|\bsocket\s*\(|\bNet::\w+",
        fetches=r"\bLWP\b|HTTP::Tiny|\bgetstore\b|File::Fetch",
        obscures=r"\beval\b|\bunpack\b|\bdecode_base64\b",
    ),
    "ruby": _language(
        r"(?<![\w.])(?:exec|system|spawn|fork|syscall)\b|\bKernel\.\w+|`[^`]+`|%x[\W]|\bIO\.popen"
        r"|\bOpen3\b|\bPTY\b|\bopen\s*\(\s*[\"']\|",
        connects=r"\bTCPSocket\b|\bTCPServer\b|\bUDPSocket\b|\bSocket\b|\bWEBrick\b|\bNet::\w+"
        r"|\brequire\s*['\"]un['\"]",
        fetches=r"\bopen-uri\b|\bURI\.open\b|\bNet::HTTP\b",
        obscures=r"(?<![\w.])eval\b|\bBase64\b|\.unpack1?\b|\binstance_eval\b",
    ),
    "php": _language(
        r"(?<!\w)(?:exec|shell_exec|system|passthru|popen|proc_open|pcntl_exec|pcntl_fork|mail"
        r"|dl)\s*\(|`[^`]+`|\bFFI\b",
        connects=r"\bfsockopen\b|\bstream_socket_\w+|\bsocket_(?:create|connect)\b|ftp_\w+\(",
        fetches=r"file_get_contents\s*\(\s*['\"]?(?:https?|ftp|\$)|\bcurl_(?:init|exec)\b"
        r"|\bcopy\s*\(\s*['\"]http|fopen\s*\(\s*['\"]http",
        obscures=r"\beval\s*\(|\bbase64_decode\b|\bgzinflate\b|\bassert\s*\(|\bcreate_function\b|\bstr_rot13\b",
    ),
    "node": _language(
        r"child_process|\b(?:exec|spawn|fork)(?:File)?(?:Sync)?\s*\(|process\.binding|\bDeno\.(?:run"
        r"|Command)\b|\bBun\.(?:spawn|\$)|Runtime\.getRuntime|ProcessBuilder",
        connects=r"require\s*\(\s*['\"](?:node:)?(?:net|dgram|tls)['\"]|createServer|createConnection",
        fetches=r"require\s*\(\s*['\"](?:node:)?https?['\"]|\bfetch\s*\(",
        obscures=r"\beval\s*\(|\bFunction\s*\(|\batob\s*\(|Buffer\.from\s*\([^)]*(?:base64|hex)",
    ),
    "lua": _language(
        r"os\s*\.\s*execute|io\s*\.\s*popen|package\.loadlib|posix\.exec|vim\.fn\.system|os\.exec",
        connects=r"require\s*\(?\s*['\"]socket|socket\.(?:tcp|connect|bind)",
        fetches=r"socket\.http",
        obscures=r"\bload(?:string)?\s*\(",
    ),
    "tcl": _language(
        r"(?:^|[\s;\[{])(?:exec\s+\S|spawn\s+(?:-\w+\s+)?(?:\S*/)?(?:ba|da|z|k)?sh\b)|\bopen\s+[\"'{]?\|",
        connects=r"(?:^|[\s;\[{])socket\s",
        fetches=r"package require http",
    ),
    "awk": _language(
        r"\bsystem\s*\(|\|\s*&?\s*getline|\|&?\s*[\"'/]|print[^;}]{0,200}\|\s*\w|@load",
        connects=r"/inet\d?/",
    ),
    "sed": _language(
        r"(?:^|[;{])[\s\d,$]*e\s+[/\w]|^[\d,$]*e\s*$|(?:^"
        r"|[;{\s])s(?:/(?:[^/\\]|\\.)*/(?:[^/\\]|\\.)*/|\|[^|]*\|[^|]*\||#[^#]*#[^#]*#|,[^,]*,[^,]*,)[gipmI0-9]*e[gipmI]*(?:[;\s}]|$)",
    ),
    "vim": _language(
        r"(?:^|[\s:|+;'\"])!\s*[\w/.$'\"-]|:\s*(?:shell|sh|terminal|term)\b|(?:^|[:|\s])set?\s+shell="
        r"|\b(?:py3?|python3?|lua|ruby|perl|tcl|pythonx|pyx)\s+\S|(?:^|[:|\s+])(?:shell|terminal)\b"
        r"|\b(?:system|job_start|term_start|termopen|jobstart)\(|w\s+!|r\s+!",
    ),
    "ed": _language(r"(?:^|\n|[;%,\d$])\s*!\s*\S|(?:^|\n)\s*[re]\s*!|w\s*!"),
    "emacs": _language(
        r"\((?:ansi-)?(?:term|shell|eshell)\b|shell-command|start-process|call-process|(?:^"
        r"|\s)M-x\s+(?:shell|term|eshell)|make-process",
    ),
    "gdb": _language(
        r"(?:^|[\s'\"])(?:!|shell\b|pipe\b|make\b)|\b(?:python|py|guile)\b|\bcall\b.*system|\bdump\s|!\s*/"
    ),
    "sql": _language(
        r"(?:^|[\s;'\"])\\!|^\s*(?:\.)?(?:shell|system)\s|\.(?:shell|system)\b|\bsystem\s+\S"
        r"|\bCOPY\b.{0,400}\b(?:PROGRAM)\b|sys_exec|sys_eval|xp_cmdshell|\bload_extension\b|\.load\b"
        r"|INTO\s+(?:OUT|DUMP)FILE|\bwritefile\(|\\(?:o|g|w)\s*\|",
    ),
    "scheme": _language(
        r"\((?:system|exec\w*|primitive-fork|open-\w*pipe|run-shell-command|shell|ext:run|run-program"
        r"|sb-ext:run-program|uiop:run-program|execl[pe]?|socket)\b|ext:run-",
    ),
    "matlab": _language(
        r"\b(?:system|shell_cmd|popen2?|exec|dos|unix|spawn)\s*[('\"]|(?:^|[\s;'\"])!\s*[/\w]|`[^`]+`"
        r"|\bput(?:s)?\b.{0,10}pipe",
    ),
    "gnuplot": _language(r"\bsystem\b|(?:^|[;\s'\"])!\s*\S|`[^`]+`|set\s+(?:output|terminal).*\||\bshell\b"),
    "r": _language(
        r"\b(?:system2?|shell|pipe|shell\.exec|processx)\s*\(",
        connects=r"\bsocketConnection\b",
        fetches=r"\bdownload\.file\b|\burl\s*\(",
    ),
    "julia": _language(
        r"\brun\s*\(|`[^`]+`|\bccall\b|\bpipeline\s*\(",
        connects=r"\bconnect\s*\(|\blisten\s*\(|\bSockets\b",
        fetches=r"\bdownload\s*\(",
    ),
    "haskell": _language(
        r"\bSystem\.Process\b|\b(?:callCommand|rawSystem|createProcess|callProcess|executeFile|system)\b|:!"
    ),
    "groovy": _language(
        r"\.execute\s*\(|Runtime|ProcessBuilder|\.exec\s*\(|System\.Process|sys\.process"
        r"|Process\.Start|os\.execute|Command::new|\.!|\bexec\b",
    ),
    "tex": _language(
        r"\\(?:immediate\s*)?\\?write18|\\input\s*\|?\s*\{?[|/]|\\directlua|\\openin|\\ShellEscape|os\.execute"
    ),
    "m4": _language(r"\b(?:e?syscmd)\b"),
    "dc": _language(r"(?:^|[\s'\"])!\s*[^<>=\s]"),
    "make": _language(r"\$\(shell\b|:;|:\s*;|\\t|\t\s*\S|\b(?:SHELL)=|\.SHELLFLAGS"),
    "bpf": _language(r"\bsystem\s*\("),
    "rpm": _language(r"%\(|%\{lua:|os\.execute|posix\.exec"),
    "smb": _language(r"(?:^|[\n;'\"\s])!\s*\S"),
    "puppet": _language(r"\bexec\s*\{|\bgenerate\s*\("),
    "pwsh": _language(
        r"\b(?:iex|Invoke-Expression|Start-Process|DownloadString|EncodedCommand|Invoke-WebRequest)\b",
        connects=r"Net\.Sockets|TCPClient",
    ),
    "console": _language(
        r"(?:^|\n)\s*(?:!|\\!|:!|/exec\b|@exec\b|shell\b|!sh)\s*\S*|(?:^|\n)\s*(?:system|core shell)\b"
    ),
    "ansible": _language(r"\b(?:shell|command|raw|script)\s*:|-m\s+(?:shell|command|raw|script)\b|-a\s"),
    "gimp": _language(r"python-fu-eval|script-fu-eval|\bos\.(?:system|exec)|gimp-\w*-system"),
}

_INTERPRETERS: Final[tuple[tuple[str, str, str], ...]] = (
    # programs, language, options whose value is code (none: code may stand in any argument)
    ("python ipython pypy jython", "python", "-c"),
    ("sqlmap", "python", "--eval"),
    ("pdb", "python", ""),
    ("perl", "perl", "-e -E -M"),
    ("ruby jruby irb pry", "ruby", "-e"),
    ("rake knife", "ruby", "-e -p -E --execute"),
    ("byebug", "ruby", ""),
    ("php", "php", "-r -B -R -E --run"),
    ("bee drush wp", "php", "ev eval php-eval"),
    ("node nodejs bun", "node", "-e -p -pe --eval --print"),
    ("deno", "node", "eval"),
    ("jrunscript", "node", "-e"),
    ("jjs jshell", "node", ""),
    ("mongo", "sql", "--eval"),
    ("mysql mariadb psql sqlite3 sqlite duckdb", "sql", ""),
    ("lua luajit texlua", "lua", "-e"),
    ("tshark", "lua", "-X"),
    ("tclsh wish", "tcl", ""),
    ("expect", "tcl", "-c"),
    ("awk gawk mawk nawk", "awk", ""),
    ("sed gsed", "sed", ""),
    ("vi vim nvim view rvim rview vimdiff gvim ex", "vim", "-c --cmd -S +"),
    ("ed red", "ed", ""),
    ("emacs emacsclient", "emacs", "--eval -eval --execute -execute -f --funcall -e"),
    ("gdb crash lldb", "gdb", "-ex -iex -eix --eval-command --init-eval-command -o"),
    ("guile clisp sbcl csi racket ecl scheme", "scheme", "-c -x -e --eval"),
    ("octave octave-cli matlab scilab maxima ginsh", "matlab", "--eval -r -e --batch-string"),
    ("slsh genie", "matlab", "-e -c"),
    ("gnuplot", "gnuplot", "-e"),
    ("R Rscript", "r", "-e --eval --expression"),
    ("julia", "julia", "-e -E --eval --print"),
    ("ghc ghci runghc", "haskell", "-e"),
    ("groovy scala kotlin dotnet ocaml swift", "groovy", "-e"),
    ("tex latex pdflatex xelatex lualatex luatex pdftex xetex latexmk", "tex", ""),
    ("m4", "m4", ""),
    ("dc bc", "dc", ""),
    ("make", "make", "--eval"),
    ("bpftrace", "bpf", "-e"),
    ("rpm rpmbuild rpmdb rpmquery rpmverify rpmkeys rpmspec", "rpm", "--eval -E --define -D"),
    ("smbclient lftp ftp sftp psftp tftp ncftp telnet", "smb", "-c -e"),
    ("puppet", "puppet", "-e --execute"),
    ("pwsh powershell", "pwsh", "-c -Command -e -enc -EncodedCommand"),
    ("ansible ansible-playbook", "ansible", ""),
    ("gimp", "gimp", "-b --batch"),
    ("asterisk", "console", "-rx -x"),
)
INTERPRETERS: Final[dict[str, tuple[str, str]]] = {
    program: (language, flags) for programs, language, flags in _INTERPRETERS for program in programs.split()
}
"""Program -> its language, and its options whose value is code."""

TYPED_ESCAPE: Final = re.compile(
    r"(?:^|\n)[ \t]*(?::?!\s?[\w/.$]|:(?:shell|terminal|set shell=|py3? |lua )|\\!\s*\S|\.(?:shell|system)\s+\S"
    r"|shell\s*(?:\n|$)|!sh\b|!/|(?:C-|\^)\w+ .{0,40}!/?\w+)"
)
"""Lines typed into a program that ask it for a shell."""
