# shellcheck shell=bash
# Sourced by the scripts in this folder. Installs programs that they need if they are missing.

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# debian_package COMMAND PACKAGE: installs the package if the command is missing.
debian_package() {
    command -v "$1" >/dev/null && return
    as_root apt-get update -q
    as_root apt-get install -qy "$2"
}

# cargo_program NAME VERSION: installs this version of the program from crates.io unless present.
# Unoptimised, because that compiles in half the time and these programs only start others.
cargo_program() {
    [ "$("$1" --version 2>/dev/null)" = "$1 $2" ] ||
        cargo install --locked --debug --force "$1" --version "$2"
}
