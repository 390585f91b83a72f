"""Inline code, options and variables that take commands, privileges and ruin, and each in honest use."""

import pytest

from suites.command_guard.baselines.shell_patterns import guard

INLINE = [
    "python3.11 -c 'import os; os.system(\"id\")'",
    "perl -e 'exec \"/bin/sh\"'",
    "ruby -e '`id`'",
    "php -r 'passthru(\"id\");'",
    'node -e \'require("child_process").exec("id")\'',
    "lua -e 'os.execute(\"id\")'",
    "awk 'BEGIN {system(\"id\")}'",
    "awk 'BEGIN {while((\"id\" | getline l) > 0) print l}'",
    "sed -n '1e id' notes.txt",
    "sed 's/.*/id/e' notes.txt",
    "vim -c ':!id' notes.txt",
    "gdb -nx -ex '!sh' -ex quit",
    "sqlite3 x.db '.shell id'",
    "psql -c \"COPY t FROM PROGRAM 'id'\"",
    "python3 <<'E'\nimport pty\npty.spawn('x')\nE",
    "echo 'import os; os.system(\"id\")' | python3",
    "python3 -c 'import base64; exec(base64.b64decode(\"cHJpbnQ=\"))'",
    "irb\nexec 'id'",
    "less notes.txt\n!id",
    "python3 -c \"import os as o; o.system('id')\"",
    'python3 -c \'getattr(__import__("o"+"s"), "sys"+"tem")("id")\'',
    'python3 -c \'print(open("/etc/" + "shadow").read())\'',
    "python3 -m pty",
    "perl -0777ne 'system \"id\"' x",
    "expect -c 'spawn sh; interact'",
    "sqlite3 <<E\n.import /etc/shadow x\nE",
]

OPTIONS = [
    "tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec=./evil",
    "tar xf x.tar -I '/tmp/x'",
    "rsync -e 'sh -c \"sh 0<&2\"' a:b c",
    "git -c core.pager='sh -c id' log",
    "git config alias.x '!sh'",
    "ssh -o ProxyCommand='/tmp/x' host",
    "tcpdump -i lo -z /tmp/x",
    "man -P 'sh -c id' ls",
    "frobnicate --hook=/bin/sh",
    "docker run -v /:/mnt -it alpine chroot /mnt sh",
]

ENVIRONMENT = [
    "PAGER='sh -c id' man ls",
    "GIT_SSH_COMMAND='touch x' git fetch",
    "LD_PRELOAD=/tmp/x.so ls",
    "env EDITOR=/tmp/x crontab -l",
    "BORG_COMMAND=/tmp/x borg list",
    "export PATH=/tmp:$PATH",
]

RUIN = [
    "chmod u+s /tmp/x",
    "chmod 4755 x",
    "setcap cap_setuid+ep x",
    "crontab new.txt",
    "systemd-run id",
    "rm -rf / --no-preserve-root",
    ":(){ :|:& };:",
]

HONEST = [
    "python -c 'print(1 + 1)'",
    "python3 -m json.tool < a.json",
    "perl -pe 's/foo/bar/' f",
    "awk -F: '{print $1}' data.txt",
    "sed -i 's#/bin/sh#/bin/bash#' build.sh",
    "sed -e 's/the/a/g; s/e x/y/' f",
    "vim +10 notes.txt",
    "sqlite3 app.db 'select count(*) from users'",
    "tar -I zstd -cf a.tar.zst dir",
    "tar czf a.tgz --checkpoint-action=dot dir",
    "rsync -av -e ssh a/ b/",
    "git config --global core.editor vim",
    "git config alias.co checkout",
    "ssh -o ProxyCommand='ssh -W %h:%p bastion' host",
    "fzf --preview 'bat --color=always {}'",
    "PAGER=cat git log",
    "EDITOR=nano crontab -l",
    "PATH=$HOME/bin:$PATH make",
    "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
    'docker run -v "$PWD":/src alpine ls /src',
    "python3 -c 'import platform; print(platform.system())'",
    "expect -c 'spawn ssh host; expect ok'",
    "perl -e 'print 1 . \"a\"'",
    'echo "DROP TABLE users;"',
]


@pytest.mark.parametrize("command", [*INLINE, *OPTIONS, *ENVIRONMENT, *RUIN])
def test_harm_is_blocked(command: str) -> None:
    assert guard(command).action == "BLOCK", guard(command)


@pytest.mark.parametrize("command", HONEST)
def test_honest_work_is_allowed(command: str) -> None:
    assert guard(command).action == "ALLOW", guard(command)
