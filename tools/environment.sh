# Sourced by the tools: makes sure that a Python with tpc and the named extras is first on the PATH.
# Where a virtual environment is active it is used; else .venv is made. An installation is repeated only when pyproject.toml changed.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
if [ -z "${VIRTUAL_ENV:-}" ]; then
    if [ ! -x .venv/bin/python ]; then
        python=
        for candidate in python3 python3.13 python3.12 python3.11 python; do
            if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
                python=$candidate
                break
            fi
        done
        [ -n "$python" ] || { echo "tpc needs Python 3.11 or newer, and found none on the PATH" >&2; exit 1; }
        echo "making a virtual environment in .venv" >&2
        "$python" -m venv .venv
    fi
    export VIRTUAL_ENV="$root/.venv" PATH="$root/.venv/bin:$PATH"
fi

install_tpc() { # extras, such as dev
    local stamp="$VIRTUAL_ENV/.tpc-$1" now
    now=$(cat pyproject.toml; pwd)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$now" ]; then
        echo "installing tpc with its extra '$1'" >&2
        python -m pip install --quiet --disable-pip-version-check -e ".[$1]"
        printf '%s\n' "$now" >"$stamp"
    fi
}
