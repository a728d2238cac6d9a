#!/usr/bin/env bash
# Every image that compose starts is here afterwards: pulled, or where no registry can be reached, made from Debian's
# packages and Kafka's released jars; ours is built. Stand-ins are made once: remove the image to make it anew.
set -euo pipefail
. "$(dirname "$0")/engine.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Inside a build, pip and apt are set up as on this machine. What is mounted stays out of the image.
mounts=()
mounted() { [[ ! -e $1 ]] || mounts+=(--volume "$1:${2:-$1}:ro"); }
of_this_machine() {
  local name value
  mounted /etc/apt
  mounted /etc/ssl/certs/ca-certificates.crt
  echo '[global]' >"$work/variables.conf"
  while IFS='=' read -r name value; do
    [[ $value != /* ]] || mounted "$value"
    name=${name#PIP_} name=${name,,}
    printf '%s = %s\n' "${name//_/-}" "$value" >>"$work/variables.conf"
  done < <(env | grep '^PIP_' || true)
  for name in /etc/pip.conf "$HOME/.pip/pip.conf" "$HOME/.config/pip/pip.conf"; do
    [[ ! -e $name ]] || { mounted "$name" /etc/pip.conf && break; }
  done
  mounts+=(--volume "$work/variables.conf:/etc/xdg/pip/pip.conf:ro")
}

build() { # IMAGE DOCKERFILE CONTEXT ARGUMENT...
  local image=$1 file=$2 context=$3 && shift 3
  echo "building $image with $engine" >&2
  if [[ $engine == podman ]]; then
    podman build --format docker "${mounts[@]}" --tag "$image" --file "$file" "$@" "$context"
  else
    docker build --tag "$image" --file "$file" "$@" "$context"
  fi
}

stand_in() { # IMAGE, and the command that makes it
  echo "no registry has $1: making a stand-in" >&2
  [[ $engine == podman && $(id -u) == 0 ]] || { echo "a stand-in needs podman, as root" >&2; exit 3; }
  "${@:2}"
}

kafka_stand_in() {
  local jars=${CGZSL_CACHE:-$HOME/.cache/stream-cgzsl}/kafka-${kafka_image#*:}
  [[ -d $jars ]] || { echo "no jars in $jars: stream-cgzsl broker start downloads them" >&2; exit 3; }
  cp -r "$here/stand-ins/kafka" "$work/kafka" && cp -r "$jars" "$work/kafka/libs"
  build "localhost/$kafka_image" "$work/kafka/Dockerfile" "$work/kafka" --build-arg "BASE=$python_stand_in"
}

prometheus_stand_in() {
  local folder=$here/stand-ins/prometheus
  build "localhost/$prometheus_image" "$folder/Dockerfile" "$folder" --build-arg "BASE=$python_stand_in"
}

python_stand_in() {
  is_here "$python_stand_in" || stand_in "$python_image" "$here/stand-ins/python.sh" "localhost/$python_stand_in"
}

arguments=(--target cpu --build-arg "TORCH_INDEX=${TORCH_INDEX:-}")
if is_here "$python_stand_in" || ! pulled "$python_image"; then
  of_this_machine
  python_stand_in
  arguments+=(--build-arg "PYTHON_IMAGE=$python_stand_in")
fi
is_here "$kafka_image" || pulled "$kafka_image" || stand_in "$kafka_image" kafka_stand_in
is_here "$prometheus_image" || pulled "$prometheus_image" || stand_in "$prometheus_image" prometheus_stand_in
build "$our_image" deploy/docker/Dockerfile . "${arguments[@]}"
