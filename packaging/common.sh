# What the builds of the Debian packages share; sourced. Sets here, top, version, maintainer and root, a folder to fill.
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1

here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")

die() { printf '%s: error: %s\n' "$(basename "$0")" "$1" >&2; exit 7; }

need() {                                                # PROGRAM... -- HINT
  local tool
  for tool in "$@"; do
    [ "$tool" != -- ] || return 0
    command -v "$tool" >/dev/null || die "no $tool: ${!#}"
  done
}

need dpkg-deb gzip md5sum -- 'apt install dpkg gzip coreutils'
version=$(sed -n 's/^__version__ = "\([0-9][0-9A-Za-z.+~]*\)"$/\1/p' "$top/offload/__init__.py")
[ -n "$version" ] || die "no version in offload/__init__.py"
# the time of the last commit, or of the changelog where there is no git
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || stat -c %Y "$top/CHANGELOG.md")}
export SOURCE_DATE_EPOCH
maintainer="${DEBFULLNAME:-ktls-offload maintainers} <${DEBEMAIL:-maintainers@ktls-offload.invalid}>"

root=$(mktemp -d)
trap 'rm -rf "$root" ${work:+"$work"}' EXIT

put() { install -D -m "$1" "$2" "$3"; }                 # MODE FILE PLACE
put_compressed() { mkdir -p "$(dirname "$1")"; gzip -9n >"$1"; }

put_changelog() {                                       # PACKAGE WHAT
  put_compressed "$root/usr/share/doc/$1/changelog.gz" <<EOT
$1 ($version) unstable; urgency=medium

  * Version $version; $2

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
EOT
}

# Makes the package of what is in $root; prints its place. The same files give the same bytes.
finish() {                                              # FOLDER NAME CONTROL [SCRIPT...]
  local out=$1 name=$2 control=$3 script
  shift 3
  mkdir -p "$root/DEBIAN" "$out"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
  sed -e "s/@VERSION@/$version/" -e "s/@MAINTAINER@/$maintainer/" -e "s/@ARCH@/${arch:-all}/" -e "s/@DEPENDS@/${depends:-}/" \
    -e "s/@SIZE@/$(du -sk --apparent-size "$root/usr" | cut -f1)/" "$control" >"$root/DEBIAN/control"
  for script in "$@"; do put 755 "$script" "$root/DEBIAN/$(basename "$script")"; done
  chmod -R go=rX,u+w "$root"
  find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/${name}_${version}_${arch:-all}.deb" >/dev/null
  printf '%s\n' "$out/${name}_${version}_${arch:-all}.deb"
}
