/** The steps of each kind of script, in order, and the report of a host at the end. */
export const main = String.raw`
# What a host is like now: what is in force, what has drifted, and on the controller the state of Slurm. Changes nothing.
logins() { awk -F '\t' '$3 == "ready" { print $1 }' "$T/ours" | sort; }

observe_host() {
  first "$S/token"; [ -z "$line" ] || emit token "$line"
  [ ! -f "$conf" ] || emit inode "$(stat -L -c %i "$conf")"
  recall_accounts
  if [ -d "$S" ] || [ -s "$T/ours" ]; then observe_state; fi
  ! has_row role controller || observe_controller
  ! has_row role login || emit home "$(timeout 5 stat -f -c %T /home 2> /dev/null)"
  ! has_row role compute || { observe_ports; observe_sshd; }
  emit end
}

observe_state() {
  first "$S/settled"; [ -z "$line" ] || emit settled "$line"
  logins > "$T/logins"
  sha256sum < "$T/logins" > "$T/digest" && read -r digest _ < "$T/digest"
  emit logins "$digest"
  has_row known "$digest" || sed "s/^/login$tab/" "$T/logins"
  [ ! -s "$S/owed" ] || sed "s/^/owed$tab/" "$S/owed"
  [ ! -s "$S/fields" ] || sed "s/^/field$tab/" "$S/fields"
  [ ! -f "$S/refused" ] || emit refused "$(cut -f 2,3 "$S/refused")"
  [ ! -f "$S/failed" ] || emit failed "$(cat "$S/failed")"
  [ ! -f "$S/trial/.after" ] || emit trial "$(kept_after)"
  ! has_row role controller || emit confirmed "$(confirmed)"
  if [ -s "$S/conflicts" ]; then cat "$S/conflicts"; fi > "$T/conflicts"
  observe_accounts
  observe_groups
  observe_files
}

# Accounts that are not as they should be, by the same plan that applying has: who is ready, and whom something stood in
# the way of. Whoever could not log in at this moment is named, so that nobody is reported as ready who is not.
observe_accounts() {
  if from_directory; then observe_directory; return 0; fi
  awk -F '\t' 's == "ours" { if ($3 == "ready") { known[$1] = 1; print $1, $2, $4, $5, $6 } next } !($2 in known) { print $2, $3, $1, "/bin/sh", $5, $6 }' \
    OFS='\t' s=ours "$T/ours" s=conflicts "$T/conflicts" > "$T/wanted"
  plan_accounts
  awk -F '\t' '$1 != $2 { print "missing-shell\t" $1 }' "$T/shells"
  awk -F '\t' '
    s == "conflicts" { stood[$2] = 1; next }
    $1 ~ /^(conflict|barred)$/ { print "conflict", $4, $2, $3, $5; if (!($2 in stood)) drift("something stands in the way of " $2); next }
    $1 ~ /^(new|mend|alter|adopt)$/ || $2 in stood { print "absent", $4, $2 }
    $2 in stood { drift("what stood in the way of " $2 " is gone"); next }
    $1 ~ /^(new|mend)$/ { drift("the account " $2 " is gone") }
    $1 == "alter" { drift("the account " $2 " is locked, or its shell is gone") }
    $1 == "change" { drift("the account " $2 " " $8) }
    $1 == "lock" { drift("the account " $2 " is not locked") }
    function drift(message) { if (++drifts <= 5) print "drift", message }' OFS='\t' s=conflicts "$T/conflicts" s=todo "$T/todo"
  observe_homes
  [ ! -s "$T/writable" ] || sed "s/.*/drift$tab& can be written to by others/; 5q" "$T/writable"
  # Whom the site lets be root is the site's to say.
  awk -F '[:,\t]' 's == "ours" { ours[$1] = 1; next } index(powerful, " " $1 " ") {
    for (i = 4; i <= NF; i++) if ($i in ours && ++notices <= 5) print "notice\t" $i " is in the group " $1 }' powerful="$powerful" s=ours "$T/ours" s= /etc/group
  notice_passwords
  say_open fault
  uids=$(locked_uids "$T/ours")
  [ -z "$uids" ] || ! has_processes "$uids" || emit drift 'someone who left has a process'
}

observe_files() {
  [ ! -f "$S/direct.sums" ] || differs "$S/direct.sums" direct_sums
  [ -d "$S/blocks" ] && [ -f "$conf" ] && for part in $parts; do
    [ -f "$S/blocks/$part" ] || continue
    ! is_others || [ -s "$S/blocks/$part" ] || continue
    [ -f "$(live $part)" ] || { [ ! -s "$S/blocks/$part" ] || emit drift "$(live $part) is gone"; continue; }
    ! has_part "$(live $part)" "$S/blocks/$part" || render "$(live $part)" "$S/blocks/$part" "$(mode_of $part)" | cmp -s - "$(live $part)" || emit drift "our part of $(live $part) is not there"
  done
  [ ! -s "$S/blocks/slurm.conf" ] || [ -f "$ours/owner" ] || emit drift "$ours/owner is gone"
  ! was_others || is_others || emit drift 'the configuration is not that of another cluster any more'
  [ ! -f "$S/files.sums" ] || differs "$S/files.sums" files_sums
  ! has_row role compute || [ ! -f "$S/scripts.sums" ] || is_others || differs "$S/scripts.sums" scripts_sums
  for role in login compute; do ! has_row role $role || is_started $role || emit drift "the start script of $role nodes has not run"; done
  ! has_row role compute || [ -x "$ours/prolog.d/00-andromeda" ] || emit drift "$ours/prolog.d is gone"
  ! has_row role compute || notice_scripts
  ! has_row role controller || [ ! -f "$S/accounting-pending" ] || emit drift 'associations are not done'
}

notice_scripts() {
  local path count=0
  for path in "$ours/prolog.d/"* "$ours/epilog.d/"*; do
    case $path in "$ours"/*log.d/00-andromeda | "$ours"/*log.d/01-site | "$ours"/*log.d/50-*) continue ;; esac
    [ -e "$path" ] && [ $count -lt 5 ] || continue
    count=$((count + 1))
    emit notice "$(basename "$path") in prolog.d or epilog.d of $ours is not ours, and runs with every job"
  done
}

differs() { # SUMS COMMAND
  $2 > "$T/sums"
  cmp -s "$1" "$T/sums" || comm -3 "$1" "$T/sums" | awk '{ print $NF }' | sort -u | sed "s/.*/drift$tab& is not as it was put there/; 5q"
}

observe_controller() {
  [ ! -f "$conf" ] || site_part "$conf" > "$T/site"
  emit site prolog "$(site_script Prolog)"
  emit site epilog "$(site_script Epilog)"
  if answers; then emit controller up; else
    emit controller down "$(last_errors)"
    return 0
  fi
  if timeout 20 scontrol -d -o show nodes > "$T/nodes" 2> /dev/null; then emit nodes; sed "s/^/node$tab/" "$T/nodes"; fi
  observe_queue
  # From Slurm itself: slurm.conf may include it from elsewhere. Without an answer it is not known, and jobs are shown to no one else.
  timeout 10 scontrol show config > "$T/slurm" 2> /dev/null
  sed -n "s/^PrivateData *= */private$tab/p" "$T/slurm"
  case $(sed -n 's/^TaskPlugin *= */=/p' "$T/slurm") in
    '' | *task/cgroup*) ;;
    *) emit job-login 'TaskPlugin has no task/cgroup, so that nothing keeps processes to the devices and the memory of their job' ;;
  esac
  [ -z "$(locked_jobs "$T/ours")" ] || emit drift 'someone who is locked has a job'
  has_accounting || return 0
  find_account
  if find_associations "$T/ours"; then
    emit accounting up
    awk -F '\t' '$3 != "ready" { print $1 }' "$T/ours" > "$T/keep"
    [ -z "$(plan_associations "$T/ours")" ] || emit drift 'associations are not as they should be'
    [ ! -s "$T/closed-by-site" ] || emit notice "the site has closed the associations of $(sort -u "$T/closed-by-site" | xargs | sed 's/ /, /g') in the account $account, and they stay closed"
    observe_limits
    observe_gpu_day
  else emit accounting down "$(manager_error)"; fi
}

# All three questions, or it is not known which jobs run: that is not the same as none. A job's name can hold a line feed, and what
# looks like another job after it: only lines with the mark, made anew each time, are Slurm's.
observe_queue() {
  first /proc/sys/kernel/random/uuid; mark=$line
  list_jobs -t running,suspended -o "$mark|%A|%i|%u|%S|%e|%N|%j" > "$T/queue" || return 0
  # By priority, with the expected start.
  list_jobs -t pending -S -p -o "$mark|%A|%i|%u|%S|%r|%j" > "$T/pending" || return 0
  list_jobs -t running,suspended,pending -O 'JobID:20,tres-alloc:1000' > "$T/held" || return 0
  for what in queue pending; do
    awk 'index($0, mark) == 1 && ++count <= 2000 { job[count] = substr($0, length(mark) + 1) }
      END { print what "\t" count + 0; for (i = 1; i in job; i++) print what "-job\t" job[i] }' mark="$mark|" what=$what "$T/$what"
  done
  sed -n "s#^\([0-9]*\) .*gres/gpu=\([0-9]*\).*#gpus$tab\1$tab\2#p" "$T/held"
}
list_jobs() { SLURM_TIME_FORMAT=%s timeout 20 squeue -h "$@" 2> /dev/null; }

# What a login into a job runs on its node; see the gateway's step script.
observe_sshd() {
  for sshd in /usr/sbin/sshd /usr/local/sbin/sshd /usr/lib/ssh/sshd /sbin/sshd; do [ ! -x $sshd ] || return 0; done
  emit job-login "OpenSSH's server is not installed"
}

observe_ports() {
  for rate in /sys/class/infiniband/*/ports/*/rate; do
    [ ! -r "$rate" ] || { emit infiniband "$(sed 's/ *(.*//' "$rate")"; break; }
  done
}

owe_all() { ! has_rows owe || owe_rows "$1"; }
owe_rows() { rows owe | awk -F '\t' -v why="$1" '$1 == why { print $2 }' > "$T/owe"; while read -r what; do owe "$what"; done < "$T/owe"; }

apply_host() {
  lock_host
  refused=''
  apply_direct
  # What restarts is noted before anything changes, so that it is not forgotten when we are cut off.
  owe_all accounts
  ! has_row role compute || apply_scripts
  apply_accounts
  apply_groups
  ! has_row role controller || { end_jobs; apply_accounting; }
  apply_configuration
  if has_row configuration apply && [ -z "$refused" ]; then
    # One that lost its notes and has what it should have restarts nothing.
    [ ! -f "$S/fields" ] && [ ! -s "$T/changed" ] && ! has_rows trial || owe_all configuration
    apply_starts
    # Noted before the restarts, so that it is put back with what they put back.
    rows field | keep "$S/fields"
    files_sums | keep "$S/files.sums"
    run_owed_steps
    [ -n "$refused" ] || has_configuration || is_others || rm -f "$ours/owner"
  fi
  # One that was on trial is not wanted any more, and what is wanted is refused.
  if has_row configuration apply && [ -n "$refused" ] && is_on_trial; then put_back; owe reload; run_owed_steps; fi
  if has_row configuration back; then put_back; run_owed_steps; fi
  catch_up_starts
  note_version
  settle
}

# Not with an account that could not be made: then all of it is tried again.
note_version() {
  case $failed in *' direct '* | *' account '* | *' group '* | *' home '* | *' process '*) return 0 ;; esac
  local generation list_version configuration
  IFS="$tab" read -r generation list_version configuration < "$T/row.version"
  [ -z "$refused" ] || configuration=$(configuration_of settled)
  keep_line "$S/current" "$(emit "$generation" "$list_version" "$configuration")"
}
# Of a configuration on trial it is the one before that is in force.
configuration_of() { cut -f 3 "$S/$1" 2> /dev/null || echo 0; }

# What is in force is confirmed when the services that people meet have restarted.
settle() {
  if is_owed login || is_owed controller || [ ! -f "$S/current" ]; then return 0; fi
  if is_on_trial; then emit "$(cut -f 1,2 "$S/current")" "$(configuration_of settled)" | keep "$S/settled"
  else first "$S/current"; keep_line "$S/settled" "$line"; fi
}

restart_host() {
  lock_host
  refused=''
  if has_row configuration back && is_on_trial; then
    digest=$(cut -f 1 "$S/trying")
    refuse "$(taken_back "$(rows why | cut -f 1 | unpack | one_line)")" "$(rows why | cut -f 2)"
    put_back_controller "$(rows step | awk -F '\t' '$1 == "reload" { print $3 }' | unpack)" || owe reload
  fi
  run_owed_steps
  if has_row configuration confirm && is_on_trial; then confirm || true; fi
  if [ -n "$refused" ]; then emit "$(cut -f 1,2 "$S/current")" "$(configuration_of settled)" | keep "$S/current"; fi
  settle
}

release_host() {
  recall_accounts
  [ -d "$S" ] || [ -s "$T/ours" ] || return 0
  lock_host
  refused=''
  hand_back_adopted || return 0
  remove_direct
  apply_groups
  # By our notes of them they leave our groups.
  case $failed in *' group '*) return 0 ;; esac
  leave_adopted
  apply_accounts
  ! has_row role controller || { end_jobs; release_accounting; }
  # One that left the cluster may share its files with those that stay.
  if has_row keep configuration; then : > "$T/changed"; else
    apply_configuration
    while read -r path; do rm -f "$path"; done < "$S/files"
  fi
  ! has_row role controller || run_owed_steps
  [ ! -s "$T/changed" ] || timeout 30 scontrol reconfigure > /dev/null 2>&1
  [ -z "$refused" ] || problem configuration "the site's own configuration is not taken: $(cut -f 3- "$S/refused")"
  from_directory || say_open notice
  case $failed in '') ;; *) return 0 ;; esac
  if from_directory; then awk -F: -v ours="$comment" '$5 == ours { print "drop", $1, $3, "", $4 }' OFS='\t' /etc/passwd
  else
    awk -F '\t' 's == "kept" { kept[$1] = 1; next } !($1 in kept) { print "drop", $1, $2, "", $6 }' OFS='\t' s=kept "$T/kept" s= "$S/accounts"
  fi > "$T/edits"
  ! is_copy || : > "$T/edits"
  edit_account_files 2> "$T/out" || problem account "the accounts cannot be removed: $(first_output)"
  [ -z "$failed" ] || return 0
  has_row keep configuration || is_others || rm -rf "$ours"
  rm -rf "$S"
  # What other clusters have there stays.
  [ -n "$(ls -A /var/lib/andromeda-slurm | grep -vx lock)" ] || { rm -f /var/lib/andromeda-slurm/lock; rmdir /var/lib/andromeda-slurm 2> /dev/null; }
}

main() {
  begin
  find_homes
  row action
  case $line in
    apply) apply_host ;;
    restart) restart_host ;;
    release) release_host; emit end; return 0 ;;
  esac
  observe_host
}
`;
