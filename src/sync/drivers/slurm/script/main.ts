/** The order of steps in each kind of script. */
export const main = String.raw`
owe_all() { rows owe | awk -F '\t' -v why="$1" '$1 == why { print $2 }' > "$T/owe"; while read -r what; do owe "$what"; done < "$T/owe"; }

apply_host() {
  lock_host
  refused=''
  # What restarts is noted before anything changes, so that it is not forgotten when we are cut off.
  owe_all accounts
  ! has_row role compute || apply_scripts
  apply_accounts
  ! has_row role controller || apply_accounting
  apply_configuration
  if has_row configuration apply && [ -z "$refused" ]; then
    # One that lost its notes and has what it should have restarts nothing.
    [ ! -f "$S/fields" ] && [ ! -s "$T/changed" ] || owe_all configuration
    apply_starts
    ! has_row role controller || run_owed_steps
    [ -n "$refused" ] || rows field | keep "$S/fields"
  fi
  catch_up_starts
  note_version
  settle
}

# Not with an account that could not be made: then all of it is tried again.
note_version() {
  case $failed in *' account '* | *' home '* | *' process '*) return 0 ;; esac
  if [ -z "$refused" ]; then rows version | keep "$S/current"
  else emit "$(rows version | cut -f 1,2)" "$(cut -f 3 "$S/current" 2> /dev/null || echo 0)" | keep "$S/current"; fi
}

# What is in force is confirmed when the services that people meet have restarted.
settle() {
  is_owed login || is_owed controller || [ ! -f "$S/current" ] || keep "$S/settled" < "$S/current"
}

restart_host() {
  lock_host
  refused=''
  owe_all now
  run_owed_steps
  if [ -n "$refused" ]; then emit "$(cut -f 1,2 "$S/current")" 0 | keep "$S/current"; fi
  settle
}

release_host() {
  recall_accounts
  [ -d "$S" ] || [ -s "$T/ours" ] || return 0
  lock_host
  refused=''
  if has_row role controller; then
    cut -f 1 "$T/ours" > "$T/everyone"
    [ ! -s "$T/everyone" ] || end_jobs "$T/everyone"
  fi
  apply_accounts
  ! has_row role controller || release_accounting
  # One that left the cluster may share its files with those that stay.
  if has_row keep configuration; then : > "$T/changed"; else
    apply_configuration
    while read -r path; do rm -f "$path"; done < "$S/files"
  fi
  if has_row role controller; then run_owed_steps; elif [ -s "$T/changed" ]; then timeout 30 scontrol reconfigure > /dev/null 2>&1; fi
  [ -z "$refused" ] || problem configuration "the site's own configuration is not taken: $(cut -f 3- "$S/refused")"
  case $failed in '') ;; *) return 0 ;; esac
  awk -F '\t' '{ print "drop", $1, $2 }' OFS='\t' "$S/accounts" > "$T/edits"
  edit_account_files 2> "$T/out" || problem account "the accounts cannot be removed: $(first_output)"
  [ -z "$failed" ] || return 0
  has_row keep configuration || rm -rf "$ours"
  rm -rf "$S"
  # What other clusters have there stays.
  [ -n "$(ls -A /var/lib/andromeda-slurm | grep -vx lock)" ] || { rm -f /var/lib/andromeda-slurm/lock; rmdir /var/lib/andromeda-slurm 2> /dev/null; }
}

main() {
  begin
  case $(rows action) in
    apply) apply_host ;;
    restart) restart_host ;;
    release) release_host; emit end; return 0 ;;
  esac
  observe_host
}
`;
