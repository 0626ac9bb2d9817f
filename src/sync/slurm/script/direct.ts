/**
 * Direct logins: the list of people who still log in past the gateway, and the program by which sshd asks it at each login
 * (`AuthorizedKeysCommand`): no change needs a reload, and the last day ends it where no service answers.
 */
export const direct = String.raw`
direct=/etc/ssh/andromeda-direct
profile=/etc/profile.d/andromeda-direct.sh

# First of all on a host: who is off the list is off it whatever fails afterwards. A list that cannot be replaced is
# removed, which lets no one in.
apply_direct() {
  if ! has_row role login || ! has_rows direct; then remove_direct; return; fi
  { mkdir -p $direct && chmod 755 $direct && direct_keys | put $direct/keys &&
    { [ ! -d /etc/profile.d ] || direct_profile | put $profile; } &&
    rows direct | tr '\t' ' ' | put "$direct/$id.list"; } > "$T/out" 2>&1 ||
    { rm -f "$direct/$id.list"; problem direct "the list of direct logins cannot be written: $(first_output)"; return; }
  direct_sums | keep "$S/direct.sums"
}
# FILE: from standard input, readable by everyone.
put() { { cat > "$1.new" && chmod 644 "$1.new" && sync "$1.new" && mv -f "$1.new" "$1"; } || { rm -f "$1.new"; return 1; }; }
remove_direct() {
  [ -d $direct ] || return 0
  rm -f "$direct/$id.list" "$S/direct.sums"
  # Another cluster may have one here.
  for list in $direct/*.list; do [ ! -e "$list" ] || return 0; done
  rm -rf $direct $profile
}
direct_sums() {
  set -- $direct $direct/keys "$direct/$id.list"
  [ ! -d /etc/profile.d ] || set -- "$@" $profile
  { stat -c '%a %u %n' "$@"; shift; sha256sum "$@"; } 2> /dev/null
}

direct_keys() {
  cat << 'END'
# sshd's AuthorizedKeysCommand for logins past the gateway, by Andromeda: prints the own keys of a person on a list, until
# the last day that the list has for them, and of anyone else nothing.
# NAME HOME FILE… [-- PROGRAM…]: where people have their keys here, as AuthorizedKeysFile and AuthorizedKeysCommand name it.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
uid=$(id -u -- "$1") && [ "$uid" != 0 ] || exit 1
if [ "$(id -u)" = 0 ]; then
  today=$(date -u +%Y-%m-%d) && [ -n "$today" ] || exit 1
  awk -v name="$1" -v today="$today" '
    $1 "" == name "" && ($2 == "always" || ($2 ~ /^2[0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$/ && today "" <= $2 "")) { found = 1 }
    END { exit !found }' /etc/ssh/andromeda-direct/*.list 2> /dev/null || exit 0
  # As the person from here on: root may not read homes that another machine exports.
  exec setpriv --reuid "$uid" --regid "$(id -g -- "$1")" --init-groups /bin/sh "$0" "$@"
fi
home=$(realpath -e -- "$2") || exit 1
# As StrictModes has it: no one else can write to the file, nor to the directories above it up to the home.
is_safe() {
  path=$(realpath -e -- "$1" 2> /dev/null) && [ -f "$path" ] || return 1
  while [ -n "$(find "$path" -maxdepth 0 \( -user 0 -o -user "$uid" \) ! -perm /022)" ]; do
    case $path in "$home" | /) return 0 ;; esac
    path=$(dirname -- "$path")
  done
  return 1
}
shift 2
while [ $# -gt 0 ]; do
  [ "$1" != -- ] || { shift; exec "$@"; }
  case $1 in /*) file=$1 ;; *) file=$home/$1 ;; esac
  if is_safe "$file"; then cat -- "$file"; fi
  shift
done
END
}

# Says what to do from now on, to those who are on the list; on terminals only, and never in a shell that a program starts.
direct_profile() {
  cat << 'END'
# By Andromeda: how people who still log in past its gateway log in from now on.
[ -z "$SSH_CONNECTION" ] || [ ! -t 1 ] || sed -n "s/^$LOGNAME 2[^ ]* //p" /etc/ssh/andromeda-direct/*.list 2> /dev/null || :
END
}
`;
