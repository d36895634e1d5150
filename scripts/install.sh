# shellcheck shell=bash
# Sourced by the scripts in this folder, in the folder of the repository. Installs programs that
# they need if they are missing, and builds programs of this repository for their tests.

# Where cargo builds, as an absolute path: CARGO_TARGET_DIR, or target/. Cargo would take a relative
# one from each folder in which it runs.
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
[ -z "${CARGO_TARGET_DIR:-}" ] || export CARGO_TARGET_DIR=$target_dir

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# retry COMMAND ARGUMENT...: runs a command that downloads, at most three times.
retry() {
    local pause
    for pause in 5 20; do
        "$@" && return
        echo "retry: \`$*\` failed; again in $pause seconds" >&2
        sleep "$pause"
    done
    "$@"
}

# apt_install PACKAGE...: waits for another run of apt, such as that of a system's first minutes.
# An update that misses some index files succeeds, so it is tried again with the installation.
apt_install() {
    retry as_root sh -ec '
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -qy -o DPkg::Lock::Timeout=300 "$@"
    ' sh "$@"
}

# debian_package COMMAND PACKAGE: installs the package if the command is missing.
debian_package() {
    command -v "$1" >/dev/null || apt_install "$2"
}

# python_venv FOLDER: makes a virtual environment of PYTHON, or python3, unless it is there.
python_venv() {
    [ -x "$1/bin/pip" ] && return
    debian_package python3 python3
    "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
    "${PYTHON:-python3}" -m venv "$1"
}

# cargo_program NAME VERSION: installs this version of the program from crates.io unless present.
# Unoptimised, because that compiles in half the time and these programs only start others.
cargo_program() {
    [ "$("$1" --version 2>/dev/null)" = "$1 $2" ] ||
        retry cargo install --locked --debug --force "$1" --version "$2"
}

# debug_build ARGUMENT...: builds these targets with the features that `cargo test --workspace
# --all-features` gives them and their dependencies, so that no crate is compiled a second time. The
# example is there for its development dependencies, which tests have too.
debug_build() {
    cargo build --locked --quiet --workspace --all-features --example seeds "$@"
}
