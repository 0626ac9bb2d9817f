/** What a host is like now: what is in force, what has drifted, and on the controller what Slurm says. Changes nothing. */
export const observe = String.raw`
logins() { awk -F '\t' '$3 == "ready" { print $1 }' "$S/accounts" 2> /dev/null | sort; }

observe_host() {
  say host "$host"
  if [ -d "$S" ]; then observe_state; fi
  ! has_row role controller || observe_controller
  ! has_row role login || say home "$(timeout 5 stat -f -c %T /home 2> /dev/null)"
  ! has_row role compute || observe_ports
  say end
}

observe_state() {
  [ ! -f "$S/settled" ] || say settled "$(cat "$S/settled")"
  [ ! -f "$S/current" ] || say current "$(cat "$S/current")"
  logins > "$T/logins"
  digest=$(sha256sum < "$T/logins" | cut -d ' ' -f 1)
  say logins "$digest"
  has_row known "$digest" || sed "s/^/login$tab/" "$T/logins"
  [ ! -f "$S/owed" ] || sed "s/^/owed$tab/" "$S/owed"
  [ ! -f "$S/fields" ] || sed "s/^/field$tab/" "$S/fields"
  [ ! -f "$S/refused" ] || say refused "$(cut -f 2- "$S/refused")"
  observe_accounts
  observe_conflicts
  observe_files
}

# Accounts that are not as we left them: gone, changed, unlocked, or with processes that should not be.
observe_accounts() {
  awk '
    s == "passwd" { there[$1] = $3; next }
    s == "shadow" { expires[$1] = $8; next }
    $3 == "ready" && !($1 in there) { print "drift", "the account " $1 " is gone"; next }
    $3 == "ready" && there[$1] != $2 { print "drift", "the account " $1 " has another uid"; next }
    $3 == "ready" && expires[$1] != "" { print "drift", "the account " $1 " is locked"; next }
    $3 == "locked" && $1 in there && there[$1] == $2 && expires[$1] != "1" { print "drift", "the account " $1 " is not locked"; next }
  ' OFS='\t' FS=: s=passwd /etc/passwd s=shadow /etc/shadow FS='\t' s=ours "$S/accounts" | head -n 5
  awk -F '\t' '$3 == "ready" { print $1 }' "$S/accounts" | while read -r name; do
    [ -e "/home/$name" ] || { say drift "/home/$name is gone"; break; }
  done
  uids=$(awk -F '\t' '$3 == "locked" { print $2 }' "$S/accounts" | paste -s -d , -)
  [ -z "$uids" ] || ! pgrep -U "$uids" > /dev/null || say drift 'someone who left has a process'
}

# A conflict whose cause is gone is something to do.
observe_conflicts() {
  [ -s "$S/conflicts" ] || return 0
  while IFS="$tab" read -r user name uid why; do
    if stands_in_the_way "$name" "$uid"; then say conflict "$user" "$name" "$uid" "$why"
    else say drift "what stood in the way of $name is gone"; fi
  done < "$S/conflicts"
}

stands_in_the_way() { # NAME UID
  [ -n "$(getent passwd "$1" "$2"; getent group "$1" "$2")" ] || { [ -e "/home/$1" ] && [ "$(stat -c %u "/home/$1")" != "$2" ]; }
}

observe_files() {
  [ -d "$S/blocks" ] && [ -f "$conf" ] && for part in $parts; do
    [ -f "$S/blocks/$part" ] || continue
    [ -f "$(live $part)" ] || { [ ! -s "$S/blocks/$part" ] || say drift "$(live $part) is gone"; continue; }
    render "$(live $part)" "$S/blocks/$part" "$(mode_of $part)" | cmp -s - "$(live $part)" || say drift "our part of $(live $part) is not there"
  done
  while read -r path; do [ -e "$path" ] || say drift "$path is gone"; done < "$S/files"
  for role in login compute; do ! has_row role $role || is_started $role || say drift "the start script of $role nodes has not run"; done
  ! has_row role compute || [ -x "$ours/prolog.d/00-andromeda" ] || say drift "$ours/prolog.d is gone"
  ! has_row role controller || [ ! -f "$S/accounting-pending" ] || say drift 'associations are not done'
}

observe_controller() {
  say site prolog "$(site_script Prolog)"
  say site epilog "$(site_script Epilog)"
  if answers; then say controller up; else
    say controller down "$(last_words)"
    return 0
  fi
  timeout 20 scontrol -o show nodes 2> /dev/null | sed "s/^/node$tab/"
  timeout 20 squeue -h -t running,suspended -o '%A|%u|%N|%j' 2> /dev/null | head -n 2000 | sed "s/^/job$tab/"
  has_accounting || return 0
  cluster=$(conf_value ClusterName) organization=$(rows organization)
  if associations > "$T/associations"; then
    say accounting up
    sed -n 's/^\([^|][^|]*\)|.*/\1/p' "$T/associations" | sort > "$T/have"
    logins | cmp -s - "$T/have" || say drift 'associations are not as they should be'
  else say accounting down "$(manager_words)"; fi
}

observe_ports() {
  for rate in /sys/class/infiniband/*/ports/*/rate; do
    [ ! -r "$rate" ] || { say infiniband "$(sed 's/ *(.*//' "$rate")"; break; }
  done
}
`;
