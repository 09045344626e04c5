# Sourced by scripts/demo and scripts/test: sets root and python, and makes .venv when it is missing or old.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
python=$root/.venv/bin/python

say() { printf '%s\n' "$*" >&2; }

# NVRx 0.4.1 has wheels for these versions only.
find_python() {
  local name
  for name in python3.11 python3.12 python3; do
    if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2> /dev/null; then
      command -v "$name"
      return
    fi
  done
  say "headway needs Python 3.11 or 3.12 as python3.11, python3.12 or python3 in PATH;" \
    "found: $(python3 --version 2> /dev/null || echo none)"
  return 1
}

# A virtual environment that was moved or whose Python is gone cannot be repaired.
usable() { "$python" -c '' 2> /dev/null && grep -qF "$root/.venv" "$root/.venv/pyvenv.cfg"; }

# make_environment EXTRAS
make_environment() {
  local extras=$1 base stamp wanted
  wanted=$(cat "$root/pyproject.toml" "$root/setup.py" "$root/constraints.txt" | cksum)
  stamp=$root/.venv/headway-$extras.stamp
  if usable; then
    if [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ]; then
      return
    fi
  else
    base=$(find_python) || return 2
    if ! "$base" -m venv --clear "$root/.venv" >&2; then
      say "could not make $root/.venv; on Debian: apt-get install python3-venv"
      return 2
    fi
  fi
  say "installing into $root/.venv (minutes the first time)"
  if ! "$python" -m pip install --quiet --quiet --disable-pip-version-check \
    -c "$root/constraints.txt" -e "$root[$extras]" >&2; then
    say "the installation failed; pip's words are above; is a package registry reachable?"
    return 2
  fi
  printf '%s\n' "$wanted" > "$stamp"
}

# Other versions of NVRx for the tests, which choose one by PYTHONPATH: its wheels hold nothing but
# Python beside one library for straggler kernels, so those of another Python and glibc will do.
make_nvrx_versions() {
  local folder=$root/.venv/nvrx stamp wanted="nvrx 0.6.0 0.7.0 grpcio 1.85.3" pip
  stamp=$folder/headway.stamp
  if [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ]; then
    return
  fi
  say "installing NVRx 0.6.0 and 0.7.0 into $folder"
  rm -rf "$folder" && mkdir -p "$folder"
  pip=("$python" -m pip install --quiet --quiet --disable-pip-version-check --no-deps --no-compile)
  local foreign=(--only-binary=:all: --platform manylinux_2_39_x86_64)
  if ! { "${pip[@]}" --target "$folder/common" grpcio==1.85.3 &&
    "${pip[@]}" --target "$folder/0.6.0" "${foreign[@]}" --python-version 3.11 nvidia-resiliency-ext==0.6.0 &&
    "${pip[@]}" --target "$folder/0.7.0" "${foreign[@]}" --python-version 3.12 nvidia-resiliency-ext==0.7.0; } >&2; then
    say "the installation failed; pip's words are above; is a package registry reachable?"
    return 2
  fi
  printf '%s\n' "$wanted" > "$stamp"
}

# The published types of Grafana's dashboards, with the compiler that holds ours to them.
make_grafana_types() {
  local folder=$root/tests/grafana stamp wanted
  stamp=$folder/node_modules/headway.stamp
  wanted=$(cksum < "$folder/package.json")
  if [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ]; then
    return
  fi
  if ! { command -v node && command -v npm; } > /dev/null; then
    say "no node and npm: the types of the dashboards are not checked"
  elif npm install --silent --no-audit --no-fund --no-package-lock --prefix "$folder" >&2; then
    printf '%s\n' "$wanted" > "$stamp"
  else
    say "npm found no registry: the types of the dashboards are not checked"
  fi
}

# need_programs PACKAGE...: Debian packages whose program has their name; root gets what is missing.
need_programs() {
  local missing=() package
  for package in "$@"; do
    command -v "$package" > /dev/null || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return
  fi
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    say "installing ${missing[*]}"
    apt-get -qq update >&2 &&
      DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >&2
  else
    say "this needs ${missing[*]}; on Debian: sudo apt-get install ${missing[*]}"
    return 2
  fi
}
