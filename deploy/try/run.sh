#!/usr/bin/env bash
# Builds the image and runs all of it in containers: workers against a broker, the demo, then the compose file, whose
# learner is killed. Says what it sees, exits non-zero if that is not what it should be, and leaves only images behind.
#   deploy/try/run.sh [--no-build]        (or: make containers)
set -euo pipefail
. "$(dirname "$0")/engine.sh"
if docker compose version >/dev/null 2>&1; then tool=(docker compose); else tool=(docker-compose); fi
if [[ $("${tool[@]}" version --short 2>/dev/null) != [2-9]* ]]; then
  echo "no Docker Compose 2 or newer here: neither \`docker compose\` nor \`docker-compose\`; it drives podman too" >&2
  exit 3
fi
[[ ${1:-} == --no-build ]] || "$here/images.sh" >&2

project=stream-cgzsl-try-$(printf "%07d" $$)
network=${project}_default
plain=("$project-learner" "$project-scorer" "$project-evaluator")
bus=kafka://kafka:19092
work=$(mktemp -d)
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
KAFKA_PORT=$(free_port) PROMETHEUS_PORT=$(free_port)
export KAFKA_PORT PROMETHEUS_PORT

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fail() { say "FAILED: $*"; exit 1; }
until_true() { # SECONDS WHAT COMMAND...
  local deadline=$((SECONDS + $1)) what=$2
  until "${@:3}"; do
    ((SECONDS < deadline)) || fail "$what: not within $1 s"
    sleep 1
  done
}

files=(--file deploy/compose/compose.yml)
grafana_image=$(sed -n 's/^    image: \(grafana\/grafana:.*\)/\1/p' deploy/compose/compose.yml)
if ! pulled "$grafana_image"; then
  say "no registry has $grafana_image: without Grafana"
  files+=(--file "$here/without-grafana.yml")
fi
compose() { "${tool[@]}" --progress quiet --project-name "$project" "${files[@]}" "$@"; }
ours() { "$engine" "$1" --quiet --filter "label=com.docker.compose.project=$project" "${@:2}"; }
container() { ours ps --all --filter "label=com.docker.compose.service=$1"; }

clean_up() {
  local status=$?
  trap - EXIT
  if ((status)); then
    for name in "${plain[@]}"; do echo "$name:" && "$engine" logs --tail 5 "$name" || true; done
    compose logs --tail 15 || true
  fi >&2 2>/dev/null
  "$engine" rm --force --volumes "${plain[@]}" >/dev/null 2>&1 || true
  compose --profile '*' down --volumes --timeout 20 >/dev/null 2>&1 || true
  local left
  left=$("$engine" ps --all --quiet --filter "name=$project"
         "$engine" network ls --quiet --filter "name=$project"
         "$engine" volume ls --quiet --filter "name=$project")
  ((${#helpers[@]})) && kill "${helpers[@]}" 2>/dev/null
  rm -rf "$work"
  if [[ -n $left ]]; then say "FAILED: left behind: $left" && exit 1; fi
  say "nothing is left: no container, no network, no volume"
  exit "$status"
}
helpers=()
trap clean_up EXIT
trap 'exit 130' INT TERM

if [[ $engine == podman ]]; then
  podman system service --time 0 "unix://$work/engine.sock" >"$work/service.log" 2>&1 &
  helpers+=($!)
  export DOCKER_HOST=unix://$work/engine.sock
  until_true 20 "podman's socket" test -S "$work/engine.sock"
  if [[ ! -d /run/systemd/system ]]; then # podman leaves health checks to systemd's timers
    while sleep 3; do
      for id in $(ours ps); do podman healthcheck run "$id" || true; done
    done >/dev/null 2>&1 &
    helpers+=($!)
  fi
fi
say "$("$engine" --version); $("${tool[@]}" version)"

hardened=(--read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --network "$network")
inside() { "$engine" run --rm --interactive "${hardened[@]}" --entrypoint python "$our_image" "$@"; }
described() { inside - "$bus" "$@" <"$here/described.py"; }

# ---- the image, its user and its file system
compose up --detach --no-build kafka
until_true 90 "the broker answers" inside -c 'import socket; socket.create_connection(("kafka", 19092))' 2>/dev/null
say "$(inside - <<'END'
import os, pathlib
import stream_cgzsl, torch, sys
for place in ("/opt/stream-cgzsl/x", "/x", "/home/x"):
    try:
        pathlib.Path(place).touch()
    except OSError as error:
        reason = error.strerror
    else:
        sys.exit(f"{place} can be written to")
pathlib.Path("/tmp/x").touch()
assert (os.getuid(), os.getgid()) == (10001, 10001), os.getuid()
print(f"user {os.getuid()}, {reason}: stream-cgzsl {stream_cgzsl.__version__}, Python {sys.version.split()[0]},",
      f"torch {torch.__version__}")
END
)"

# ---- one container each, as anybody would start them
worker() {
  "$engine" run --detach --name "$project-$1" "${hardened[@]}" --env "CGZSL_BUS=$bus" --env CGZSL_PREFIX=plain \
    "$our_image" "${@:2}" >/dev/null
}
"$engine" run --rm "${hardened[@]}" "$our_image" topics create --bus "$bus" --prefix plain --partitions 2 >/dev/null
worker learner learn --port 9101 --attributes 32 --features 128
worker scorer score --port 9101
worker evaluator evaluate --port 9101
say "a learner, a scorer and an evaluator: $(described plain 20 --teach | paste -sd '|' | sed 's/|/; /')"
"$engine" stop --time 30 "${plain[@]}" >/dev/null
for name in "${plain[@]}"; do
  status=$("$engine" inspect --format '{{.State.ExitCode}}' "$name")
  [[ $status == 0 ]] || fail "$name ended with exit code $status after SIGTERM"
done
say "stopped: each ended with exit code 0"
"$engine" run --rm "${hardened[@]}" "$our_image" demo --bus "$bus" >"$work/demo" || fail "the demo: $(cat "$work/demo")"
say "the demo: $(grep -A1 'Six classes' "$work/demo" | tr -d '│\n' | tr -s ' ' | sed 's/^ //; s/ $//')"

# ---- everything in the compose file
compose up --detach --no-build
say "compose started: $(compose ps --services | paste -sd ' ')"
healthy() { [[ $("$engine" inspect --format '{{.State.Health.Status}}' "$(container "$1")") == healthy ]]; }
for name in kafka learner standby scorer scorer-2 evaluator; do
  until_true 120 "$name is healthy" healthy "$name"
done
say "all healthy"
compose --profile example up --detach --no-build feed
status=$("$engine" wait "$(container feed)")
[[ $status == 0 ]] || fail "the example feed ended with exit code $status"
say "the example feed ended: $("$engine" logs "$(container feed)" 2>&1 | tail -1)"
say "$(described cgzsl 40)"

ask_prometheus() {
  curl --silent --fail "http://127.0.0.1:$PROMETHEUS_PORT/api/v1/query" --data-urlencode "query=$1" |
    sed -n 's/.*,"\([0-9.]*\)"\].*/\1/p'
}
equals() { [[ $(ask_prometheus "$1") == "$2" ]]; }
until_true 90 "Prometheus sees five workers" equals 'sum(up{stream="cgzsl"})' 5
until_true 90 "one learner leads" equals 'sum(cgzsl_learner_active)' 1
say "Prometheus sees 5 workers, one leader, generation $(ask_prometheus 'max(cgzsl_ledger_generation_number)')"

leads() { "$engine" exec "$(container "$1")" python -c 'import sys, urllib.request as r
sys.exit("cgzsl_learner_active 1.0" not in r.urlopen("http://127.0.0.1:9101/metrics").read().decode())'; }
if leads learner; then leader=learner other=standby; else leader=standby other=learner; fi
"$engine" kill "$(container $leader)" >/dev/null
say "killed the leader, $leader; $(described cgzsl 41)"
leads $other || fail "$other does not lead"
say "$other leads"
"$engine" run --rm --network host "$our_image" check --bus "kafka://localhost:$KAFKA_PORT" --prefix cgzsl >"$work/check"
say "check, through the port of this machine: $(tail -1 "$work/check")"
compose --profile '*' down --volumes --timeout 20
