# To be sourced: which container engine is here ($engine), and how the others of this folder use it.
# An engine is Docker or podman; CGZSL_ENGINE chooses one.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=$PWD/deploy/try
[[ -d /run/systemd/system ]] || {
  export CONTAINERS_CONF=${CONTAINERS_CONF:-$here/containers.conf} BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
}

answers() { timeout 20 "$1" ps >/dev/null 2>&1; }
engine=
for candidate in ${CGZSL_ENGINE:-docker podman}; do
  if command -v "$candidate" >/dev/null && answers "$candidate"; then engine=$candidate && break; fi
done
if [[ -z $engine ]]; then
  echo "no container engine answers here: neither Docker's daemon nor podman" >&2
  exit 3
fi

python_image=$(sed -n 's/^ARG PYTHON_IMAGE=//p' deploy/docker/Dockerfile)
our_image=$(sed -n 's/^  image: \(stream-cgzsl:.*\)/\1/p' deploy/compose/compose.yml)
kafka_image=$(sed -n 's/^    image: \(apache\/kafka:.*\)/\1/p' deploy/compose/compose.yml)
prometheus_image=$(sed -n 's/^    image: \(prom\/prometheus:.*\)/\1/p' deploy/compose/compose.yml)
python_stand_in=stream-cgzsl-try/python:stand-in

is_here() { "$engine" image inspect "$1" >/dev/null 2>&1; }
pulled() { is_here "$1" || timeout 300 "$engine" pull --quiet "$1" >/dev/null 2>&1; }
