"""Interpreters and tools with a language of their own: how code gets in, and what in that code runs commands or opens connections."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from providers.baselines.shell_patterns.rules.programs import names


@dataclass(frozen=True, slots=True)
class Language:
    """`executes`, `connects`, `writes` and `obscures` are searched in code; None where the language has no such thing."""

    executes: re.Pattern[str]
    connects: re.Pattern[str] | None = None
    fetches: re.Pattern[str] | None = None
    obscures: re.Pattern[str] | None = None


def _language(executes: str, connects: str = "", fetches: str = "", obscures: str = "") -> Language:
    def compiled(pattern: str) -> re.Pattern[str] | None:
        return re.compile(pattern, re.VERBOSE | re.MULTILINE) if pattern else None

    return Language(re.compile(executes, re.VERBOSE | re.MULTILINE), compiled(connects), compiled(fetches), compiled(obscures))


_EX_COMMANDS: Final = r"""(?:^|[\s:|+;'"])!\s*[\w/.$'"-] | :\s*(?:shell|sh|terminal|term)\b | (?:^|[:|\s])set?\s+shell= | \b(?:py3?|python3?|lua|ruby|perl|tcl|pythonx|pyx)\s+\S
    | (?:^|[:|\s+])(?:shell|terminal)\b | \b(?:system|job_start|term_start|termopen|jobstart)\(|w\s+!|r\s+!"""
_SQL_SHELL: Final = r"""(?:^|[\s;'"])\\!|^\s*(?:\.)?(?:shell|system)\s|\.(?:shell|system)\b|\bsystem\s+\S|\bCOPY\b.{0,400}\b(?:PROGRAM)\b|sys_exec|sys_eval|xp_cmdshell|
    \bload_extension\b|\.load\b|INTO\s+(?:OUT|DUMP)FILE|\bwritefile\(|\\(?:o|g|w)\s*\|"""

LANGUAGES: Final[dict[str, Language]] = {
    "python": _language(
        r"""\bos\s*\.\s*(?:system|popen|exec[lv]p?e?|spawn\w*|posix_spawn\w*|startfile|dup2)\b | \bsubprocess\b | \bpty\s*\.\s*spawn | \bpopen\s*\( | \bcommands\.get
        | \bfrom\s+os\s+import\b | \bctypes\b | \bfrom\s+pty\s+import\b | (?<![\w.])system\s*\( | \bplatform\.popen | \bpdb\b.*!|code\.interact""",
        r"\bsocket\s*\(|socket\.(?:create_connection|socket)|\bsocketserver\b|\basyncore\b|\bftplib\b|\bsmtplib\b|\btelnetlib\b|\bparamiko\b|http\.server|HTTPServer|asyncio\.open_connection",
        r"\burlretrieve\b|\burlopen\b|\brequests\.(?:get|post|put)\b|\bhttp\.client\b|\burllib\d?\b|\bhttpx\b",
        r"\b(?:exec|eval|__import__|compile)\s*\(|\b(?:b64decode|fromhex|unhexlify|marshal\.loads|pickle\.loads|decompress)\b|getattr\s*\(\s*__",
    ),
    "perl": _language(
        r"""(?<![\w$>@%])(?:exec|system|readpipe|syscall)\b | `[^`]+` | \bqx\b | \bopen\w*\s*\(?[^;]{0,80}(?:["']\s*\||\|\s*["']|["']-\||["']\|-)|\bPOSIX\b.*\bdup2\b|\bIPC::""",
        r"\bSocket\b|\bIO::Socket|\bsocket\s*\(|\bNet::\w+",
        r"\bLWP\b|HTTP::Tiny|\bgetstore\b|File::Fetch",
        r"\beval\b|\bunpack\b|\bdecode_base64\b",
    ),
    "ruby": _language(
        r"""(?<![\w.])(?:exec|system|spawn|fork|syscall)\b | \bKernel\.\w+ | `[^`]+` | %x[\W] | \bIO\.popen | \bOpen3\b | \bPTY\b | \bopen\s*\(\s*["']\|""",
        r"\bTCPSocket\b|\bTCPServer\b|\bUDPSocket\b|\bSocket\b|\bWEBrick\b|\bNet::\w+|\brequire\s*['\"]un['\"]",
        r"\bopen-uri\b|\bURI\.open\b|\bNet::HTTP\b",
        r"(?<![\w.])eval\b|\bBase64\b|\.unpack1?\b|\binstance_eval\b",
    ),
    "php": _language(
        r"""(?<!\w)(?:exec|shell_exec|system|passthru|popen|proc_open|pcntl_exec|pcntl_fork|mail|dl)\s*\( | `[^`]+` | \bFFI\b""",
        r"\bfsockopen\b|\bstream_socket_\w+|\bsocket_(?:create|connect)\b|ftp_\w+\(",
        r"file_get_contents\s*\(\s*['\"]?(?:https?|ftp|\$)|\bcurl_(?:init|exec)\b|\bcopy\s*\(\s*['\"]http|fopen\s*\(\s*['\"]http",
        r"\beval\s*\(|\bbase64_decode\b|\bgzinflate\b|\bassert\s*\(|\bcreate_function\b|\bstr_rot13\b",
    ),
    "node": _language(
        r"""child_process | \b(?:exec|spawn|fork)(?:File)?(?:Sync)?\s*\( | process\.binding | \bDeno\.(?:run|Command)\b | \bBun\.(?:spawn|\$) | Runtime\.getRuntime | ProcessBuilder""",
        r"require\s*\(\s*['\"](?:node:)?(?:net|dgram|tls)['\"]|createServer|createConnection",
        r"require\s*\(\s*['\"](?:node:)?https?['\"]|\bfetch\s*\(",
        r"\beval\s*\(|\bFunction\s*\(|\batob\s*\(|Buffer\.from\s*\([^)]*(?:base64|hex)",
    ),
    "lua": _language(
        r"os\s*\.\s*execute|io\s*\.\s*popen|package\.loadlib|posix\.exec|vim\.fn\.system|os\.exec",
        r"require\s*\(?\s*['\"]socket|socket\.(?:tcp|connect|bind)",
        r"socket\.http",
        r"\bload(?:string)?\s*\(",
    ),
    "tcl": _language(r"(?:^|[\s;\[{])exec\s+\S|\bopen\s+[\"'{]?\|", r"(?:^|[\s;\[{])socket\s", r"package require http", r""),
    "awk": _language(
        r"""\bsystem\s*\( | \|\s*&?\s*getline | \|&?\s*["'/] | print[^;}]{0,200}\|\s*\w | @load""",
        r"/inet\d?/",
    ),
    "sed": _language(
        r"""(?:^|[;{])[\s\d,$]*e\s+[/\w] | ^[\d,$]*e\s*$
        | (?:^|[;{\s])s(?:/(?:[^/\\]|\\.)*/(?:[^/\\]|\\.)*/|\|[^|]*\|[^|]*\||\#[^\#]*\#[^\#]*\#|,[^,]*,[^,]*,)[gipmI0-9]*e[gipmI]*(?:[;\s}]|$)"""
    ),
    "vim": _language(_EX_COMMANDS),
    "ed": _language(r"(?:^|\n|[;%,\d$])\s*!\s*\S|(?:^|\n)\s*[re]\s*!|w\s*!"),
    "emacs": _language(r"""\((?:ansi-)?(?:term|shell|eshell)\b | shell-command | start-process | call-process | (?:^|\s)M-x\s+(?:shell|term|eshell) | make-process"""),
    "gdb": _language(r"(?:^|[\s'\"])(?:!|shell\b|pipe\b|make\b)|\b(?:python|py|guile)\b|\bcall\b.*system|\bdump\s|!\s*/"),
    "sql": _language(_SQL_SHELL),
    "scheme": _language(r"\((?:system|exec\w*|primitive-fork|open-\w*pipe|run-shell-command|shell|ext:run|run-program|sb-ext:run-program|uiop:run-program|execl[pe]?|socket)\b|ext:run-"),
    "matlab": _language(r"\b(?:system|shell_cmd|popen2?|exec|dos|unix|spawn)\s*[('\"]|(?:^|[\s;'\"])!\s*[/\w]|`[^`]+`|\bput(?:s)?\b.{0,10}pipe"),
    "gnuplot": _language(r"\bsystem\b|(?:^|[;\s'\"])!\s*\S|`[^`]+`|set\s+(?:output|terminal).*\||\bshell\b"),
    "r": _language(r"\b(?:system2?|shell|pipe|shell\.exec|processx)\s*\(", r"\bsocketConnection\b", r"\bdownload\.file\b|\burl\s*\("),
    "julia": _language(r"\brun\s*\(|`[^`]+`|\bccall\b|\bpipeline\s*\(", r"\bconnect\s*\(|\blisten\s*\(|\bSockets\b", r"\bdownload\s*\("),
    "haskell": _language(r"\bSystem\.Process\b|\b(?:callCommand|rawSystem|createProcess|callProcess|executeFile|system)\b|:!"),
    "groovy": _language(r"\.execute\s*\(|Runtime|ProcessBuilder|\.exec\s*\(|System\.Process|sys\.process|Process\.Start|os\.execute|Command::new|\.!|\bexec\b"),
    "tex": _language(r"\\(?:immediate\s*)?\\?write18|\\input\s*\|?\s*\{?[|/]|\\directlua|\\openin|\\ShellEscape|os\.execute"),
    "m4": _language(r"\b(?:e?syscmd)\b"),
    "dc": _language(r"(?:^|[\s'\"])!\s*[^<>=\s]"),
    "make": _language(r"\$\(shell\b|:;|:\s*;|\\t|\t\s*\S|\b(?:SHELL)=|\.SHELLFLAGS"),
    "jq": _language(r"(?!)"),
    "bpf": _language(r"\bsystem\s*\("),
    "rpm": _language(r"%\(|%\{lua:|os\.execute|posix\.exec"),
    "smb": _language(r"(?:^|[\n;'\"\s])!\s*\S"),
    "puppet": _language(r"\bexec\s*\{|\bgenerate\s*\("),
    "pwsh": _language(r"\b(?:iex|Invoke-Expression|Start-Process|DownloadString|EncodedCommand|Invoke-WebRequest)\b", r"Net\.Sockets|TCPClient"),
    "console": _language(r"(?:^|\n)\s*(?:!|\\!|:!|/exec\b|@exec\b|shell\b|!sh)\s*\S*|(?:^|\n)\s*(?:system|core shell)\b"),
    "ansible": _language(r"\b(?:shell|command|raw|script)\s*:|-m\s+(?:shell|command|raw|script)\b|-a\s"),
    "gimp": _language(r"python-fu-eval|script-fu-eval|\bos\.(?:system|exec)|gimp-\w*-system"),
    "unusual": _language(r"\bsystem\s*\(|\bexec\w*\s*\(|\bpopen\s*\("),
}

INTERPRETERS: Final[dict[str, tuple[str, str]]] = {
    # program -> (language, options whose value is code; empty: code may stand in any argument)
    "python": ("python", "-c"),
    "ipython": ("python", "-c"),
    "pypy": ("python", "-c"),
    "jython": ("python", "-c"),
    "pdb": ("python", ""),
    "perl": ("perl", "-e -E -M"),
    "ruby": ("ruby", "-e"),
    "jruby": ("ruby", "-e"),
    "irb": ("ruby", "-e"),
    "pry": ("ruby", "-e"),
    "rake": ("ruby", "-e -p -E --execute"),
    "knife": ("ruby", "-E"),
    "byebug": ("ruby", ""),
    "php": ("php", "-r -B -R -E --run"),
    "node": ("node", "-e -p -pe --eval --print"),
    "nodejs": ("node", "-e -p -pe --eval --print"),
    "bun": ("node", "-e --eval"),
    "deno": ("node", "eval"),
    "jjs": ("node", ""),
    "jrunscript": ("node", "-e"),
    "jshell": ("node", ""),
    "mongo": ("sql", "--eval"),
    "lua": ("lua", "-e"),
    "luajit": ("lua", "-e"),
    "texlua": ("lua", "-e"),
    "tclsh": ("tcl", ""),
    "wish": ("tcl", ""),
    "expect": ("tcl", "-c"),
    "tshark": ("lua", "-X"),
    "slsh": ("matlab", "-e"),
    **dict.fromkeys(names("awk gawk mawk nawk"), ("awk", "")),
    "sed": ("sed", ""),
    "gsed": ("sed", ""),
    **dict.fromkeys(names("vi vim nvim view rvim rview vimdiff gvim ex"), ("vim", "-c --cmd -S +")),
    **dict.fromkeys(names("ed red"), ("ed", "")),
    **dict.fromkeys(names("emacs emacsclient"), ("emacs", "--eval -eval --execute -execute -f --funcall -e")),
    **dict.fromkeys(names("gdb gdbus crash lldb"), ("gdb", "-ex -iex -eix --eval-command --init-eval-command -o")),
    **dict.fromkeys(names("mysql mariadb psql sqlite3 sqlite duckdb"), ("sql", "")),
    **dict.fromkeys(names("guile clisp sbcl csi racket ecl scheme"), ("scheme", "-c -x -e --eval")),
    **dict.fromkeys(names("octave octave-cli matlab scilab maxima ginsh"), ("matlab", "--eval -r -e --batch-string")),
    "gnuplot": ("gnuplot", "-e"),
    **dict.fromkeys(names("R Rscript r"), ("r", "-e --eval --expression")),
    "julia": ("julia", "-e -E --eval --print"),
    **dict.fromkeys(names("ghc ghci runghc"), ("haskell", "-e")),
    **dict.fromkeys(names("groovy scala kotlin dotnet csi ocaml swift"), ("groovy", "-e")),
    **dict.fromkeys(names("tex latex pdflatex xelatex lualatex luatex pdftex xetex latexmk"), ("tex", "")),
    "m4": ("m4", ""),
    **dict.fromkeys(names("dc bc"), ("dc", "")),
    "make": ("make", "--eval -s"),
    "bpftrace": ("bpf", "-e"),
    **dict.fromkeys(names("rpm rpmbuild rpmdb rpmquery rpmverify rpmkeys rpmspec"), ("rpm", "--eval -E --define -D")),
    **dict.fromkeys(names("smbclient lftp ftp sftp psftp tftp ncftp telnet"), ("smb", "-c -e")),
    "puppet": ("puppet", "-e --execute"),
    "bee": ("php", "eval php-eval"),
    "drush": ("php", "ev eval php-eval"),
    "wp": ("php", "eval"),
    **dict.fromkeys(names("pwsh powershell"), ("pwsh", "-c -Command -e -enc -EncodedCommand")),
    **dict.fromkeys(names("ansible ansible-playbook"), ("ansible", "")),
    "gimp": ("gimp", "-b --batch"),
    "asterisk": ("console", "-rx -x"),
    "elvish": ("console", ""),
    "genie": ("matlab", "-c"),
    "sqlmap": ("python", "--eval"),
    "zathura": ("console", ""),
}

INLINE_EVALUATORS: Final = re.compile(r"(?:^|[^\w])(?:eval|exec)\b")
"""Generic sign of code that builds code."""

TYPED_ESCAPE: Final = re.compile(
    r"(?:^|\n)[ \t]*(?::?!\s?[\w/.$]|:(?:shell|terminal|set shell=|py3? |lua )|\\!\s*\S|\.(?:shell|system)\s+\S|shell\s*(?:\n|$)|!sh\b|!/|(?:C-|\^)\w+ .{0,40}!/?\w+)"
)
"""Lines typed into a program that ask it for a shell."""
