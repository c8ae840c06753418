# shellcheck shell=sh
# What the scripts of this folder share.

say() {
    printf '==> %s\n' "$*" >&2
}

fail() {
    printf 'headstart: %s\n' "$@" >&2
    exit 1
}

# Runs a command as root. The person is asked for a password by sudo or doas, if at all.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    elif command -v doas >/dev/null 2>&1; then
        doas "$@"
    else
        fail "this needs root, and neither sudo nor doas is installed. Run as root:" "  $*"
    fi
}

# What is built by root in somebody's own checkout, that somebody cannot rebuild or remove.
refuse_sudo() {
    if [ "$(id -u)" -eq 0 ] && [ "${SUDO_UID:-0}" -ne 0 ] && [ "$(stat -c %u .)" -eq "$SUDO_UID" ]; then
        fail "run make without sudo: it asks for root where that is needed, and builds as you"
    fi
}
