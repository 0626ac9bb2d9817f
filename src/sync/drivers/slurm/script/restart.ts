/** Restarts of services on a host, and the watch over a new configuration: it stays only when Slurm comes back with it. */
export const restart = String.raw`
answers() { timeout 10 scontrol ping 2> /dev/null | grep -q 'is UP'; }
comes_back() {
  local tries
  for tries in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    answers && { sleep 0.7; answers && return 0; }
    [ "$tries" -lt 4 ] && sleep 0.3 || sleep 1
  done
  return 1
}

# restart_controller COMMAND; with what is on trial, or what was there before.
restart_controller() {
  if run_command "$1"; then status=0; else status=$?; first_output > "$T/why"; fi
  if [ $status -eq 0 ] && comes_back; then
    timeout 10 scontrol reconfigure > /dev/null 2>&1 && sleep 0.3
    if answers; then confirm; return 0; fi
  fi
  [ -d "$S/trial" ] || { report_controller "$status"; return 1; }
  put_back "$1"
}
report_controller() {
  if [ "$1" -ne 0 ]; then problem restart "restartController ended with $1: $(cat "$T/why")"
  else problem restart "slurmctld does not come back: $(last_errors)"; fi
}
last_errors() {
  local log
  log=$(conf_value SlurmctldLogFile)
  { if [ -f "$log" ]; then tail -n 40 "$log"; else journalctl -u slurmctld -n 40 --no-pager 2> /dev/null; fi; } |
    # What stands before its last start or end is no reason for that it is not there.
    awk '/slurmctld version .* started/ { found = "" } /Terminate signal/ { found = $0 "\n" } /fatal|error/ { found = found $0 "\n" } END { printf "%s", found }' |
    grep -vEi 'pmix|MPI' | tail -n 2 | sed 's/^\[[^]]*\] //' | one_line
}
# Slurm takes up what changed without a restart, where it can: other nodes it takes up only when it starts.
reload_controller() { # COMMAND
  if [ -f "$S/trial/$(basename "$conf")" ] && answers; then
    grep -hi '^[ \t]*NodeName' "$S/trial/$(basename "$conf")" > "$T/nodes.before"
    grep -hi '^[ \t]*NodeName' "$conf" > "$T/nodes.after"
    cmp -s "$T/nodes.before" "$T/nodes.after" || { restart_controller "$1"; return; }
  fi
  if answers && timeout 30 scontrol reconfigure > "$T/out" 2>&1 && comes_back; then confirm; return 0; fi
  restart_controller "$1"
}
confirm() { rm -rf "$S/trial" "$S/trying"; }

put_back() { # COMMAND
  local why path
  why=$(last_errors)
  for path in "$S/trial/"*; do
    [ ! -f "$path" ] || replace "$path" "$etc/$(basename "$path")"
  done
  [ ! -f "$S/trial/.absent" ] || while read -r path; do rm -f "$path"; done < "$S/trial/.absent"
  keep "$S/files" < "$S/trial/.files"
  rm -rf "$S/blocks"
  [ ! -d "$S/trial/.blocks" ] || cp -R "$S/trial/.blocks" "$S/blocks"
  emit "$(cat "$S/trying")" "$(rows version | cut -f 3)" "slurmctld did not live with it, and the last good one was put back: $why" | keep "$S/refused"
  rm -rf "$S/trial" "$S/trying"
  refused=yes
  run_command "$1" && comes_back && { timeout 10 scontrol reconfigure > /dev/null 2>&1; return 0; }
  problem restart "slurmctld does not come back with the last good configuration either: $(last_errors)"
  return 1
}

# The node gives up its jobs, as one that is replaced would; one that someone else took out of service stays out.
restart_compute() { # NODE COMMAND
  local state taken=yes
  state=$(timeout 10 scontrol -o show node "$1" 2> /dev/null)
  case $state in
    *Reason=andromeda*) ;;
    *State=*DRAIN* | *State=DOWN* | *State=*MAINT*) taken=no ;;
  esac
  if [ $taken = yes ]; then timeout 10 scontrol update "NodeName=$1" State=DOWN 'Reason=andromeda: restart' > "$T/out" 2>&1
  else timeout 10 scancel -w "$1" > /dev/null 2>&1; fi
  run_start compute || true
  run_command "$2" || { problem restart "restartCompute of $1 ended with $?: $(first_output)"; return 1; }
  [ $taken = no ] || for tries in 1 2 3 4 5; do
    case $(timeout 10 scontrol -o show node "$1" 2> /dev/null) in *State=DOWN*) ;; *) break ;; esac
    timeout 10 scontrol update "NodeName=$1" State=RESUME > /dev/null 2>&1; sleep 0.3
  done
}

# Each thing that is owed and asked for, in the order of the data.
run_owed_steps() {
  rows step > "$T/steps"
  while IFS="$tab" read -r role name text; do
    owed=$role
    [ "$name" = - ] || owed="$role $name"
    is_owed "$owed" || continue
    command=$(printf '%s' "$text" | unpack)
    case $role in
      login) run_start login || true
        run_command "$command" || { problem restart "restartLogin ended with $?: $(first_output)"; continue; } ;;
      controller) restart_controller "$command" || continue; clear_owed reload ;;
      reload) reload_controller "$command" || continue ;;
      # Where slurm.conf has none, none is restarted.
      accounting) [ -f "$conf" ] && ! has_accounting || run_command "$command" || { problem restart "restartAccounting ended with $?: $(first_output)"; continue; } ;;
      compute) restart_compute "$name" "$command" || continue ;;
    esac
    clear_owed "$owed"
    emit done "$owed"
  done < "$T/steps"
}
`;
