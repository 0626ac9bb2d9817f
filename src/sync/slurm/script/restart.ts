/** Restarts services on a host and watches a new configuration, which stays only if Slurm comes back with it. */
export const restart = String.raw`
answers() { case $(timeout 10 scontrol ping 2> /dev/null) in *'is UP'*) ;; *) return 1 ;; esac; }
comes_back() {
  local tries
  for tries in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    answers && { sleep 0.7; answers && return 0; }
    [ "$tries" -lt 4 ] && sleep 0.3 || sleep 1
  done
  return 1
}

# watch DAEMON [NODE]: from here on, what it says is about the restart that comes.
watch() {
  case $1 in
    slurmctld) log=$(conf_value SlurmctldLogFile) ;;
    slurmd) log=$(conf_value SlurmdLogFile | sed "s/%n/$2/g; s/%h/$(uname -n | cut -d . -f 1)/g") ;;
  esac
  daemon=$1 log_from=$(($(stat -c %s "$log" 2> /dev/null || echo 0) + 1)) watched_at=$(date +%s)
}
said_since() { if [ -f "$log" ]; then tail -c "+$log_from" "$log"; else journalctl -u "$daemon" --since "@$watched_at" -o cat --no-pager 2> /dev/null; fi; }
# Words of its own that it cannot run.
gave_up() { said_since | grep -Eq 'fatal|initialization failed'; }
why_not() { said_since | grep -E 'fatal|error' | last_lines; }
last_lines() { grep -vEi 'pmix|MPI|High latency|initialization failed' | tail -n 2 | sed 's/^\[[^]]*\] //' | one_line; }
last_errors() {
  watch slurmctld
  { if [ -f "$log" ]; then tail -n 40 "$log"; else journalctl -u slurmctld -n 40 --no-pager 2> /dev/null; fi; } |
    # What stands before its last start or end is no reason for that it is not there.
    awk '/slurmctld version .* started/ { found = "" } /Terminate signal/ { found = $0 "\n" } /fatal|error/ { found = found $0 "\n" } END { printf "%s", found }' |
    last_lines
}

# restart_controller COMMAND; with what is on trial, or what was there before.
restart_controller() {
  local status=0 why
  watch slurmctld
  run_command "$1" || status=$?
  [ $status -eq 0 ] && comes_back && return 0
  if [ $status -eq 0 ]; then why="slurmctld does not come back: $(why_not)"
  else why="restartController ended with $status: $(first_output) $(why_not)"; fi
  is_on_trial || { problem restart "$why"; return 1; }
  digest=$(cut -f 1 "$S/trying")
  # A command that fails may be at fault by itself.
  if [ $status -ne 0 ] && ! gave_up; then refuse "$(taken_back "$why")" retry; else refuse "$(taken_back "$why")"; fi
  put_back_controller "$1"
}
taken_back() { printf '%s; the last good one was put back.' "$(printf '%s' "$1" | sed 's/[. ]*$//')"; }
# The last good configuration; nodes that restarted with the other restart again.
put_back() {
  local path
  is_others || restore_last_good
  if [ -d "$S/was" ]; then
    for path in "$S/was/"*; do owe "slurmd $(basename "$path")"; done
    rm -rf "$S/back" && mv "$S/was" "$S/back" || abort "$S/back cannot be written"
  fi
  rm -rf "$S/trial" "$S/trying"
}
put_back_controller() { # COMMAND
  put_back
  watch slurmctld
  run_command "$1"
  comes_back || { problem restart "slurmctld does not come back with the last good configuration either: $(first_output) $(why_not)"; return 1; }
}

# State and reason of nodes, as Slurm names them.
node_states() { # [NODE]
  SLURM_TIME_FORMAT=standard timeout 20 scontrol -o show node $1 2> /dev/null | awk '
    function field(name) { return match($0, "(^| )" name "=[^ ]*") ? substr($0, RSTART + index(substr($0, RSTART), "="), RLENGTH - index(substr($0, RSTART), "=")) : "" }
    {
      reason = match($0, / Reason=.*/) ? substr($0, RSTART + 8) : ""
      by = reason; sub(/.* \[/, "", by); sub(/@.*/, "", by); sub(/ \[[^@ ]*@[^]]*\].*/, "", reason)
      print field("NodeName"), field("State"), field("SlurmdStartTime"), by, reason
    }' OFS='\t'
}
# The user of Slurm, by name and by number, in whichever file it stands: slurmctld knows.
slurm_user() {
  [ -s "$T/user" ] || timeout 10 scontrol show config 2> /dev/null | sed -n 's/^SlurmUser *= *\([^ (]*\)(\([0-9]*\)).*/ \1 \2 /p' > "$T/user"
  cat "$T/user"
}
# worse BEFORE AFTER: nodes that take less work than before, unless a person took them out of service, with Slurm's reason.
worse() {
  awk -F '\t' -v slurm="$(slurm_user)" '
    function faults(state, found) {
      gsub(/POWER(ED|ING)?_DOWN/, "", state)
      if (state ~ /DRAIN/) found = found " DRAIN"
      if (state ~ /INVAL/) found = found " INVAL"
      if (state ~ /DOWN|FAIL|NOT_RESPONDING|[*]$/) found = found " DOWN"
      return found
    }
    NR == FNR { before[$1] = faults($2); known[$1] = 1; next }
    !($1 in known) || before[$1] ~ /DOWN/ || ($5 != "" && slurm != "" && !index(slurm, " " $4 " ")) { next }
    {
      size = split(faults($2), now, " ")
      for (i = 1; i <= size; i++) if (!index(before[$1], now[i])) { print now[i], $1 " is " $2 ($5 == "" ? "" : ": " $5); next }
    }' OFS='\t' "$1" "$2"
}
what_is_worse() { cut -f 2- "$T/worse" | head -n 3 | paste -s -d ';' -; }
# DOWN goes by itself, or has other causes.
is_taken_out() { grep -q '^DRAIN\|^INVAL' "$T/worse"; }
# confirm: nothing is worse than before with the configuration on trial. It is the good one from here on.
confirm() {
  local tries
  for tries in 1 2 3 4 5 6 7 8 9 10; do
    node_states > "$T/nodes"
    worse "$S/trial/.nodes" "$T/nodes" > "$T/worse"
    [ -s "$T/worse" ] || break
    sleep 1
  done
  if is_taken_out; then problem unfit "$(what_is_worse)"; return 1; fi
  if [ -s "$T/worse" ]; then problem restart "$(what_is_worse)"; return 1; fi
  emit $(($(confirmed) + 1)) | keep "$S/confirmed"
  rm -rf "$S/trial" "$S/trying"
}

# Down or not responding before anything of ours: what comes of a restart then says nothing about what is new.
was_away() { # NODE
  node_states "$1" > "$T/before"
  if has_rows trial; then set -- "$S/was/$1"
  elif [ -f "$S/back/$1" ]; then set -- "$S/back/$1"
  elif grep -qxF "$1" "$S/failed" 2> /dev/null; then return 1
  else set -- "$T/before"; fi
  awk -F '\t' '{ gsub(/POWER(ED|ING)?_DOWN/, "", $2) } $2 ~ /DOWN|NOT_RESPONDING|[*]/ && $5 !~ /^andromeda:/ { away = 1 } END { exit !away }' "$1"
}

# restart_slurmd NODE COMMAND: jobs go on. It must register, and its node must be no worse than before.
restart_slurmd() {
  local since tries status=0
  node_states "$1" > "$T/before"
  : > "$T/worse"
  # Before it ends: what cannot be read costs nothing then.
  if [ -f "$conf" ] && ! reads_gres "$1" "$conf" 'fatal:|parsing error|unrecognized key|waiting for gres.conf file'; then
    problem unfit "$1 cannot use gres.conf: $(check_error)"; return 1
  fi
  watch slurmd "$1"
  since=$(date +%Y-%m-%dT%H:%M:%S)
  run_command "$2" || status=$?
  if [ $status -ne 0 ]; then
    if gave_up; then problem unfit "slurmd of $1 does not start: $(why_not)"
    else problem restart "restartCompute of $1 ended with $status: $(first_output)"; fi
    return 1
  fi
  # slurmctld does not answer, or does not get through to it: nothing is to be seen.
  case $(cut -f 2 "$T/before") in '' | *NOT_RESPONDING* | *\*) return 0 ;; esac
  for tries in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    node_states "$1" > "$T/after"
    gave_up && break
    if [ -s "$T/after" ] && awk -F '\t' -v since="$since" '$3 !~ /^[0-9]/ || $3 < since { exit 1 }' "$T/after"; then
      worse "$T/before" "$T/after" > "$T/worse"
      [ -s "$T/worse" ] || { sleep 0.3; gave_up || return 0; break; }
      # Marks of a node that has just come back go by themselves.
      is_taken_out && break
    fi
    [ "$tries" -lt 6 ] && sleep 0.3 || sleep 1
  done
  if [ -s "$T/worse" ] && ! gave_up; then problem unfit "$(what_is_worse)"
  else problem unfit "slurmd of $1 does not register: $(why_not)"; fi
  return 1
}
# A node that the configuration before took out of service takes work again.
recover() { # NODE
  [ -f "$S/back/$1" ] || return 0
  node_states "$1" > "$T/after"
  worse "$S/back/$1" "$T/after" > "$T/worse"
  [ ! -s "$T/worse" ] || resume "$1"
  rm -f "$S/back/$1"
}
resume() { # NODE
  local tries
  for tries in 1 2 3 4 5; do
    timeout 10 scontrol update "NodeName=$1" State=RESUME > /dev/null 2>&1; sleep 0.3
    case $(node_states "$1" | cut -f 2) in DOWN* | *DRAIN*) ;; *) return 0 ;; esac
  done
}

# The node gives up its jobs, as one that is replaced would; one that someone else took out of service stays out.
restart_compute() { # NODE COMMAND
  local state taken=yes
  node_states "$1" > "$T/whole"
  state=$(timeout 10 scontrol -o show node "$1" 2> /dev/null)
  case $state in
    *Reason=andromeda*) ;;
    *State=*DRAIN* | *State=DOWN* | *State=*MAINT*) taken=no ;;
  esac
  if [ $taken = yes ]; then timeout 10 scontrol update "NodeName=$1" State=DOWN 'Reason=andromeda: restart' > "$T/out" 2>&1
  else timeout 10 scancel -w "$1" > /dev/null 2>&1; fi
  run_start compute || true
  restart_slurmd "$1" "$2" || return 1
  [ $taken = yes ] || return 0
  resume "$1"
  node_states "$1" > "$T/after"
  worse "$T/whole" "$T/after" > "$T/worse"
  ! is_taken_out || { problem unfit "$(what_is_worse)"; return 1; }
}

# Each thing that is owed and asked for, in the order of the data.
run_owed_steps() {
  [ -s "$S/owed" ] && has_rows step || return 0
  while IFS="$tab" read -r role name text; do
    owed=$role
    [ "$name" = - ] || owed="$role $name"
    is_owed "$owed" || continue
    command=$(printf '%s' "$text" | unpack)
    if [ "$name" != - ] && has_rows trial && [ ! -f "$S/was/$name" ]; then mkdir -p "$S/was" && node_states "$name" > "$S/was/$name"; fi
    case $role in
      login) run_start login || true
        run_command "$command" || { problem restart "restartLogin ended with $?: $(first_output)"; continue; } ;;
      controller | reload) restart_controller "$command" || continue; clear_owed controller; clear_owed reload ;;
      # Where slurm.conf has none, none is restarted.
      accounting) [ -f "$conf" ] && ! has_accounting || run_command "$command" || { problem restart "restartAccounting ended with $?: $(first_output)"; continue; } ;;
      compute | slurmd)
        if was_away "$name"; then
          [ "$role" = slurmd ] || { timeout 10 scancel -w "$name" > /dev/null 2>&1; run_start compute || true; }
          run_command "$command" || continue
        else
          printf '%s\n' "$name" | keep "$S/failed"
          "restart_$role" "$name" "$command" || break
          rm -f "$S/failed"
        fi
        recover "$name"
        clear_owed "slurmd $name" ;;
    esac
    clear_owed "$owed"
  done < "$T/row.step"
}
`;
