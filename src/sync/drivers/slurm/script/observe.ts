/** What a host is like now: what is in force, what has drifted, and on the controller the state of Slurm. Changes nothing. */
export const observe = String.raw`
logins() { awk -F '\t' '$3 == "ready" { print $1 }' "$T/ours" | sort; }

observe_host() {
  emit host "$host"
  [ ! -f "$S/token" ] || emit token "$(cat "$S/token")"
  [ ! -f "$conf" ] || emit inode "$(stat -L -c %i "$conf")"
  recall_accounts
  if [ -d "$S" ] || [ -s "$T/ours" ]; then observe_state; fi
  ! has_row role controller || observe_controller
  ! has_row role login || emit home "$(timeout 5 stat -f -c %T /home 2> /dev/null)"
  ! has_row role compute || observe_ports
  emit end
}

observe_state() {
  [ ! -f "$S/settled" ] || emit settled "$(cat "$S/settled")"
  [ ! -f "$S/current" ] || emit current "$(cat "$S/current")"
  logins > "$T/logins"
  digest=$(sha256sum < "$T/logins" | cut -d ' ' -f 1)
  emit logins "$digest"
  has_row known "$digest" || sed "s/^/login$tab/" "$T/logins"
  [ ! -f "$S/owed" ] || sed "s/^/owed$tab/" "$S/owed"
  [ ! -f "$S/fields" ] || sed "s/^/field$tab/" "$S/fields"
  [ ! -f "$S/refused" ] || emit refused "$(cut -f 2- "$S/refused")"
  cat "$S/conflicts" > "$T/conflicts" 2> /dev/null
  observe_accounts
  observe_files
}

# Accounts that are not as they should be, by the same plan that applying has: who is ready, and whom something stood in
# the way of. Whoever could not log in at this moment is named, so that nobody is reported as ready who is not.
observe_accounts() {
  awk -F '\t' 's == "ours" { if ($3 == "ready") { known[$1] = 1; print $1, $2, $4, $5 } next } !($2 in known) { print $2, $3, $1, "/bin/sh" }' \
    OFS='\t' s=ours "$T/ours" s=conflicts "$T/conflicts" > "$T/wanted"
  plan_accounts
  awk -F '\t' '
    s == "conflicts" { stood[$2] = 1; next }
    $1 ~ /^(conflict|barred)$/ { print "conflict", $4, $2, $3, $5; if (!($2 in stood)) drift("something stands in the way of " $2); next }
    $1 ~ /^(new|mend|alter)$/ || $2 in stood { print "absent", $4, $2 }
    $2 in stood { drift("what stood in the way of " $2 " is gone"); next }
    $1 ~ /^(new|mend)$/ { drift("the account " $2 " is gone") }
    $1 == "alter" { drift("the account " $2 " is locked, or its shell is gone") }
    $1 == "change" { drift("the account " $2 " has another shell") }
    $1 == "lock" { drift("the account " $2 " is not locked") }
    function drift(message) { if (++drifts <= 5) print "drift", message }' OFS='\t' s=conflicts "$T/conflicts" s=todo "$T/todo"
  awk -F '\t' '$3 == "ready" { print $1 }' "$T/ours" | while read -r name; do
    [ -e "/home/$name" ] || { emit drift "/home/$name is gone"; break; }
  done
  uids=$(locked_uids "$T/ours")
  [ -z "$uids" ] || ! pgrep -U "$uids" > /dev/null || emit drift 'someone who left has a process'
}

observe_files() {
  [ -d "$S/blocks" ] && [ -f "$conf" ] && for part in $parts; do
    [ -f "$S/blocks/$part" ] || continue
    [ -f "$(live $part)" ] || { [ ! -s "$S/blocks/$part" ] || emit drift "$(live $part) is gone"; continue; }
    render "$(live $part)" "$S/blocks/$part" "$(mode_of $part)" | cmp -s - "$(live $part)" || emit drift "our part of $(live $part) is not there"
  done
  [ ! -f "$S/files" ] || while read -r path; do [ -e "$path" ] || emit drift "$path is gone"; done < "$S/files"
  for role in login compute; do ! has_row role $role || is_started $role || emit drift "the start script of $role nodes has not run"; done
  ! has_row role compute || [ -x "$ours/prolog.d/00-andromeda" ] || emit drift "$ours/prolog.d is gone"
  ! has_row role controller || [ ! -f "$S/accounting-pending" ] || emit drift 'associations are not done'
}

observe_controller() {
  emit site prolog "$(site_script Prolog)"
  emit site epilog "$(site_script Epilog)"
  if answers; then emit controller up; else
    emit controller down "$(last_errors)"
    return 0
  fi
  timeout 20 scontrol -d -o show nodes 2> /dev/null | sed "s/^/node$tab/"
  timeout 20 squeue -h -t running,suspended -o '%A|%u|%N|%j' 2> /dev/null | head -n 2000 | sed "s/^/job$tab/"
  has_accounting || return 0
  cluster=$(conf_value ClusterName) organization=$(rows organization)
  if associations > "$T/associations"; then
    emit accounting up
    sed -n 's/^\([^|][^|]*\)|.*/\1/p' "$T/associations" | sort > "$T/have"
    logins | cmp -s - "$T/have" || emit drift 'associations are not as they should be'
  else emit accounting down "$(manager_error)"; fi
}

observe_ports() {
  for rate in /sys/class/infiniband/*/ports/*/rate; do
    [ ! -r "$rate" ] || { emit infiniband "$(sed 's/ *(.*//' "$rate")"; break; }
  done
}
`;
