#!/bin/sh
# Installs the client of Andromeda for this account, from @URL@.
#
#   curl -fsSL @URL@/install.sh | sh
#   curl -fsSL @URL@/install.sh | sh -s -- --executable
#
# It needs no root and writes to one directory only: $ANDROMEDA_INSTALL_DIR, else ~/.local/bin. --executable takes the program
# that needs no Node, where the service offers one for this machine; --node takes the one that does.
set -eu

url='@URL@'
platform_url='@PLATFORM_URL@'
mjs_sum='@MJS_SUM@'
# One line each: system, name, SHA-256.
executables='@EXECUTABLES@'

say() { printf '%s\n' "$*"; }
fail() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

# $1 as one word of a shell, whatever is in it.
apostrophe="'"
quoted() {
  rest=$1
  word=
  while :; do
    case "$rest" in
      *"$apostrophe"*)
        word="$word${rest%%"$apostrophe"*}$apostrophe\\$apostrophe$apostrophe"
        rest=${rest#*"$apostrophe"}
        ;;
      *) break ;;
    esac
  done
  printf "'%s'" "$word$rest"
}

# Downloads $1 as $2. A service that is busy is asked again, for half a minute at least; sets $said to why it failed.
said=
fetch() {
  if command -v curl >/dev/null 2>&1; then
    status=$(curl -sSL --connect-timeout 20 --retry 5 -w '%{http_code}' -o "$2" "$1") || return 1
    [ "$status" != 200 ] || return 0
    message=$(grep -o '"message":"[^"]*"' "$2" 2>/dev/null | cut -d '"' -f 4 | cut -c 1-300) || :
    said=" ($status${message:+: $message})"
    return 1
  elif command -v wget >/dev/null 2>&1; then
    pause=1
    while ! wget -T 60 -O "$2" "$1" 2>"$2.log"; do
      said=$(grep -E 'ERROR [45]|error: HTTP' "$2.log" | cut -c 1-300) || :
      case "$said" in *50[0234]*) ;; *) pause=32 ;; esac
      said=${said:+ ($said)}
      [ "$pause" -lt 32 ] || return 1
      sleep "$pause"
      pause=$((pause * 2))
    done
  else
    fail 'Neither curl nor wget is here; install one of them. Nothing was changed.'
  fi
}

sum() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum <"$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 <"$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r <"$1" | cut -d ' ' -f 1
  else
    fail 'Neither sha256sum, shasum nor openssl is here to verify what was downloaded. Nothing was changed.'
  fi
}

has_node() {
  version=$(node --version 2>/dev/null </dev/null) || return 1
  version=${version#v}
  test "${version%%.*}" -ge @OLDEST_NODE@ 2>/dev/null
}

machine() {
  case "$(uname -s)" in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) system=other ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) echo "$system-x64" ;;
    aarch64 | arm64) echo "$system-arm64" ;;
    *) echo "$system-other" ;;
  esac
}

# A directory beside the place of the files, so that each goes there in one step.
temporary=
clean() { if [ -n "$temporary" ]; then rm -rf "$temporary"; fi; }

# Downloads $1 as $temporary/$2, and verifies that its SHA-256 is $3.
download() {
  fetch "$1" "$temporary/$2" || fail "$1 could not be downloaded$said. Nothing was changed."
  found=$(sum "$temporary/$2")
  [ "$found" = "$3" ] ||
    fail "$1 has the SHA-256 $found, and should have $3. Try again; nothing was changed."
  chmod 755 "$temporary/$2"
}

# Runs what people will type where it will lie, before it takes the place of anything.
try_command() {
  status=0
  "$temporary/andromeda" --help >/dev/null 2>&1 </dev/null || status=$?
  case $status in
    0) ;;
    126) fail "Programs cannot be started from $dir (is it on a disk that is mounted noexec?). Name another directory: ANDROMEDA_INSTALL_DIR=DIR. Nothing was changed." ;;
    *) fail 'What was downloaded does not run on this machine. Nothing was changed.' ;;
  esac
}

main() {
  kind=auto
  for argument in "$@"; do
    case "$argument" in
      --executable) kind=executable ;;
      --node) kind=node ;;
      *) fail "There is no option $argument; --executable and --node are. Nothing was changed." ;;
    esac
  done
  [ -n "${ANDROMEDA_INSTALL_DIR:-}" ] || [ -n "${HOME:-}" ] || fail 'HOME is not set. Nothing was changed.'
  dir=${ANDROMEDA_INSTALL_DIR:-$HOME/.local/bin}
  platform=$(machine)
  line=$(say "$executables" | grep "^$platform " || :)

  if [ "$kind" = auto ]; then
    if has_node; then kind=node; elif [ -n "$line" ]; then kind=executable; else
      fail "This machine has no Node @OLDEST_NODE@ or later, and $url offers no program for $platform that needs none. Install Node (https://nodejs.org), or ask whoever runs the service for \`andromeda clients add\`. Nothing was changed."
    fi
  fi
  [ "$kind" = node ] || [ -n "$line" ] ||
    fail "$url offers no program for $platform that needs no Node. Nothing was changed."
  [ "$kind" = executable ] || has_node ||
    fail "This machine has no Node @OLDEST_NODE@ or later; install it (https://nodejs.org). Nothing was changed."

  mkdir -p "$dir" 2>/dev/null ||
    fail "$dir cannot be made. Name a directory of yours: ANDROMEDA_INSTALL_DIR=DIR. Nothing was changed."
  for file in "$dir/andromeda" "$dir/andromeda.mjs"; do
    [ ! -d "$file" ] || fail "$file is a directory. Move it away, or name another directory: ANDROMEDA_INSTALL_DIR=DIR. Nothing was changed."
  done
  # Left behind by a run that was killed.
  find "$dir" -maxdepth 1 -name '.andromeda-install.??????' -mmin +60 -exec rm -rf {} + 2>/dev/null || :
  trap clean EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  temporary=$(mktemp -d "$dir/.andromeda-install.XXXXXX" 2>/dev/null) ||
    fail "$dir cannot be written. Name a directory of yours: ANDROMEDA_INSTALL_DIR=DIR. Nothing was changed."

  if [ "$kind" = node ]; then
    download "$url/andromeda.mjs" andromeda.mjs "$mjs_sum"
    node "$temporary/andromeda.mjs" --help >/dev/null 2>&1 </dev/null ||
      fail 'What was downloaded does not run here. Nothing was changed.'
    ln -s andromeda.mjs "$temporary/andromeda"
    try_command
    mv -f "$temporary/andromeda.mjs" "$dir/andromeda.mjs"
    # The name that people type comes last.
    mv -f "$temporary/andromeda" "$dir/andromeda"
    written="$dir/andromeda and $dir/andromeda.mjs, which run on Node $(node --version </dev/null)"
    undo="rm $(quoted "$dir/andromeda") $(quoted "$dir/andromeda.mjs")"
  else
    download "$url/download/$(say "$line" | cut -d ' ' -f 2)" andromeda "$(say "$line" | cut -d ' ' -f 3)"
    try_command
    # Of an earlier run that took the one for Node, if the command is a link to it.
    portable=
    if [ -L "$dir/andromeda" ] && [ "$dir/andromeda" -ef "$dir/andromeda.mjs" ]; then portable="$dir/andromeda.mjs"; fi
    mv -f "$temporary/andromeda" "$dir/andromeda"
    written="$dir/andromeda"
    if [ -n "$portable" ]; then
      rm -f "$portable"
      written="$written, in place of the one that runs on Node; $portable was removed"
    fi
    undo="rm $(quoted "$dir/andromeda")"
  fi

  say "Installed: $written."
  say "It is what $url offers, verified by its SHA-256. Nothing else was changed."
  say "To undo it: $undo"
  say
  case ":$PATH:" in
    *":$dir:"*)
      found=$(command -v andromeda || :)
      [ "$found" = "$dir/andromeda" ] || say "Another program comes first in your PATH: $found"
      command=andromeda
      ;;
    *)
      say "$dir is not in your PATH. This puts it there, for this shell; in your profile, for all:"
      say "    export PATH=$(quoted "$dir"):\"\$PATH\""
      command=$(quoted "$dir/andromeda")
      ;;
  esac
  say "Sign in:"
  say "    $command auth login --url $platform_url"
}

# The last line, so that half of this script does nothing.
main "$@"
