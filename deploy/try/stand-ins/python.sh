#!/usr/bin/env bash
# Makes an image that stands for python:3.x-slim where no registry can be reached: Debian, its Python, and pip.
#   python.sh IMAGE [DIRECTORY]     as root, with podman and debootstrap
set -euo pipefail
image=$1
root=$(mktemp -d "${2:-/var/tmp}/debian-XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT

sources=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
mirror=$(grep -Em1 '^(URIs:|deb )' <<<"$sources" | grep -Eom1 '[a-z]+://[^ ]+')
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv "$suite" "$root" "$mirror" >"$root.log" ||
  { tail "$root.log" >&2; exit 1; }

# As in the image it stands for: `python` and `pip` on the path, and pip may be removed again.
ln -s /usr/bin/python3 "$root/usr/local/bin/python"
rm "$root"/usr/lib/python3*/EXTERNALLY-MANAGED
chroot "$root" /bin/bash -c 'PYTHONPATH=$(echo /usr/share/python-wheels/pip-*.whl) \
  python3 -m pip --isolated install --quiet --no-index --no-cache-dir --find-links /usr/share/python-wheels pip'

# Where it came from is this machine's own business.
rm -rf "$root"/etc/apt/sources.list* "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/log/* "$root.log" \
  "$root"/etc/hostname "$root"/etc/hosts "$root"/etc/resolv.conf
host=$(cut -d/ -f3 <<<"$mirror")
! grep -rqIF "$host" "$root/etc" "$root/var" || { echo "$host stands in $root/etc or $root/var" >&2; exit 1; }
tar -C "$root" --numeric-owner -c . | podman import --change 'CMD ["python3"]' - "$image"
