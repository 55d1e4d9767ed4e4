#!/usr/bin/env bash
# Install the system programs that are missing where that needs no question (Debian or Ubuntu, as root or with sudo).
# Elsewhere say exactly what is missing and how to get it. What is needed stands in lib/wanbench/programs.csv; with the
# argument `tests` also what only tests need.
#
# Ends with 0 even if programs are missing, as the committed samples can be replayed without any of them; ends with 1
# only if there is no Python for the environment.
set -u
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

purposes=(measuring "hosts by SSH" Kafka "static figures")
[ "${1-}" = tests ] && purposes+=("tests of hosts by SSH")

minimum_java=17 # of Kafka's brokers, as in lib/wanbench/measure/kafka/java_commands.py

present() { # any of these programs; Java only if it is new enough
    local program
    if [ "$1" = java ]; then
        [[ $(java -version 2>&1) =~ version\ \"(1\.)?([0-9]+) ]] && ((BASH_REMATCH[2] >= minimum_java))
        return
    fi
    for program in "$@"; do
        command -v "$program" >/dev/null 2>&1 && return 0
    done
    case "$1" in
    chromium)
        [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ] ||
            [ -x "/Applications/Chromium.app/Contents/MacOS/Chromium" ]
        ;;
    *) return 1 ;;
    esac
}

missing() { # lines of programs.csv whose program is not there, for one purpose
    local names purpose rest
    while IFS=, read -r names purpose rest; do
        [ "$purpose" = "$1" ] || continue
        # shellcheck disable=SC2086  # one name per word
        present $names || printf '%s,%s,%s\n' "$names" "$purpose" "$rest"
    done <lib/wanbench/programs.csv
}

python_present() {
    .venv/bin/python -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1)' 2>/dev/null ||
        scripts/find-python.sh >/dev/null
}

as_root() { # run as root without ever waiting for a password nobody can type
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        sudo "$@"
    else
        return 126
    fi
}

lists_fresh=no
install_debian() { # package names
    local quiet=(-qq -o Acquire::http::Timeout=30 -o Acquire::Retries=2 -o DPkg::Lock::Timeout=120)
    if [ "$lists_fresh" = no ]; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" update </dev/null >&2 || return 1
        lists_fresh=yes
    fi
    echo "Installing $*" >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" -o Dpkg::Use-Pty=0 -y --no-install-recommends \
        install "$@" </dev/null >&2
}

install_or_each() { # package names: together, or else the ones this system has
    install_debian "$@" && return
    [ "$lists_fresh" = yes ] && [ $# -gt 1 ] || return 1
    local package failed=0
    for package in "$@"; do
        install_debian "$package" || failed=1
    done
    return $failed
}

installed() { # package
    [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) = *" installed" ]]
}

# Debian starts what it installs: sysstat samples the machine every 10 minutes, where a lab needs sar only, and sshd lets in
# whoever has an account, where tests start their own.
services=(sysstat openssh-server)
switch_off() { # package that was installed just now
    command -v systemctl >/dev/null 2>&1 || return 0
    local what units
    case "$1" in
    sysstat) what="the system-wide sampling" units=(sysstat-collect.timer sysstat-summary.timer sysstat.service) ;;
    *) what="the server" units=(ssh.socket ssh.service) ;;
    esac
    # In a container there may be a systemctl, but nothing that it could switch off.
    as_root systemctl disable --now "${units[@]}" </dev/null >/dev/null 2>&1 &&
        echo "Switched off $what of $1, which was installed just now: ${units[*]}" >&2
}

can_install() {
    command -v apt-get >/dev/null 2>&1 && as_root true 2>/dev/null
}

if can_install; then
    had=" "
    for package in "${services[@]}"; do
        ! installed "$package" || had+="$package "
    done
    for purpose in "${purposes[@]}"; do
        wanted=$(missing "$purpose" | cut -d, -f3 | tr ' ' '\n' | sort -u | tr '\n' ' ')
        # shellcheck disable=SC2086  # one package per word
        [ -z "${wanted// /}" ] || install_or_each $wanted || echo "apt-get could not install: $wanted" >&2
    done
    for package in "${services[@]}"; do
        [[ "$had" = *" $package "* ]] || ! installed "$package" || switch_off "$package"
    done
    python_present || install_debian python3 python3-venv || true
fi

for purpose in "${purposes[@]}"; do
    lacking=$(missing "$purpose")
    [ -n "$lacking" ] || continue
    {
        echo "Missing for $purpose:"
        printf '%s\n' "$lacking" | while IFS=, read -r names _ debian fedora macos; do
            echo "  ${names%% *}"
            echo "      Debian, Ubuntu:  apt-get install $debian"
            echo "      Fedora:          dnf install $fedora"
            echo "      macOS:           $macos"
        done
        case "$purpose" in
        measuring) echo "Without these nothing can be measured here; the committed samples are replayed instead." ;;
        tests*) echo "Without it the tests of hosts by SSH are skipped." ;;
        *SSH) echo "Without it no hosts can be reached by SSH." ;;
        Kafka) echo "Without these experiments with Kafka cannot run here." ;;
        *) echo "Without it pages have interactive figures only, and the browser tests are skipped." ;;
        esac
        echo
    } >&2
done

if ! python_present; then
    cat >&2 <<'END'
No Python 3.11 or newer with venv was found (looked for python3.13, python3.12, python3.11, python3).
  Debian 12, Ubuntu 24.04 or newer:  apt-get install python3 python3-venv
  Ubuntu 22.04:                      apt-get install python3.11 python3.11-venv
  Fedora:                            dnf install python3
  macOS:                             brew install python@3.13
END
    exit 1
fi
