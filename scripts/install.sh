# shellcheck shell=bash
# Sourced by the scripts beside it: installs what they need and the machine lacks.

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# debian_package COMMAND PACKAGE: installs the package if there is no such command.
debian_package() {
    command -v "$1" >/dev/null && return
    as_root apt-get update -q
    as_root apt-get install -qy "$2"
}

# cargo_program NAME VERSION: installs the program from crates.io unless this version is there.
# Unoptimised: it compiles in half the time, and these programs only start others.
cargo_program() {
    [ "$("$1" --version 2>/dev/null)" = "$1 $2" ] ||
        cargo install --locked --debug --force "$1" --version "$2"
}
