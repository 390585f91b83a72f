#!/bin/sh
# Install what evalake needs of the system: `sh deploy/system_packages.sh setup [PYTHON]` to set it up, `… test` for all tests.
# As root it installs with apt-get. Elsewhere it prints the line to type, and exits with 1 where something is missing.
set -u

missing=
need() { # PACKAGE COMMAND…: the package is missing where the command fails
    package=$1
    shift
    "$@" > /dev/null 2>&1 || missing="$missing $package"
}

has_browser() { # without windows or with them; another one may be named
    if [ -n "${EVALAKE_CHROMIUM:-}" ]; then
        command -v "$EVALAKE_CHROMIUM"
    else
        command -v chromium-headless-shell || command -v chromium
    fi
}

has_postgresql() { # Debian's package keeps its programs off the path
    command -v initdb || ls /usr/lib/postgresql/*/bin/initdb
}

look() {
    missing=
    case $purpose in
        setup)
            need python3 command -v "$python"
            version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])' 2> /dev/null || echo python3)
            need "$version-venv" "$python" -c 'import ensurepip, venv'
            ;;
        test)
            need git command -v git
            need chromium-headless-shell has_browser
            need postgresql has_postgresql
            need nodejs command -v node
            need npm command -v npm
            need systemd command -v systemd-analyze
            ;;
        *)
            echo "usage: sh deploy/system_packages.sh setup [PYTHON] | test" >&2
            exit 2
            ;;
    esac
}

purpose=${1:-}
python=${2:-python3}
look
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get > /dev/null; then
    echo "Installing$missing with apt-get …"
    # shellcheck disable=SC2086 # one word a package
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq $missing > /dev/null
    look
    [ -n "$missing" ] || exit 0
fi

case $purpose in
    setup) echo "evalake cannot be set up without$missing. Install it, and try again:" >&2 ;;
    test) echo "Tests that need$missing are left out. To run them, install it:" >&2 ;;
esac
echo "    sudo apt-get install --yes$missing" >&2
exit 1
