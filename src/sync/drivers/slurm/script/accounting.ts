/** Slurm accounting, from the controller: one account an organization, one association a person, in few calls. */
export const accounting = String.raw`
manager() { timeout 30 sacctmgr "$@" < /dev/null 2> "$T/manager" 9>&-; }
manager_error() { one_line < "$T/manager"; }
has_accounting() {
  case $(conf_value AccountingStorageType) in '' | accounting_storage/none) return 1 ;; esac
}
associations() { manager -nP show assoc "cluster=$cluster" "account=$organization" format=user,account; }

# Who should have an association, sorted.
members() { awk -F '\t' '$3 == "ready" { print $1 }' "$S/accounts" | sort; }

apply_accounting() {
  has_accounting || return 0
  cluster=$(conf_value ClusterName) organization=$(rows organization)
  : > "$S/accounting-pending"
  associations > "$T/associations" || { problem accounting "slurmdbd does not answer: $(manager_error)"; return 0; }
  if ! grep -q "^|" "$T/associations"; then
    description=$(manager -nP show account "name=$organization" format=description) || return 0
    case $description in
      '' | andromeda) ;;
      *) problem accounting "the Slurm account $organization is there already and is not ours"; return 0 ;;
    esac
    manager -i add account "$organization" "cluster=$cluster" Description=andromeda Organization=andromeda > /dev/null
  fi
  sed -n 's/^\([^|][^|]*\)|.*/\1/p' "$T/associations" | sort > "$T/have"
  members > "$T/want"
  comm -13 "$T/have" "$T/want" | paste -s -d ',' - | in_batches add_associations
  comm -23 "$T/have" "$T/want" > "$T/leave"
  [ ! -s "$T/leave" ] || remove_associations
  associations | sed -n 's/^\([^|][^|]*\)|.*/\1/p' | sort > "$T/have"
  if cmp -s "$T/have" "$T/want"; then rm -f "$S/accounting-pending"
  else problem accounting "associations are not as they should be yet: $(comm -3 "$T/have" "$T/want" | head -n 5 | one_line) $(manager_error)"; fi
}

release_accounting() {
  has_accounting || return 0
  apply_accounting
  case $failed in *' accounting '*) return 0 ;; esac
  manager -i delete account "name=$organization" "cluster=$cluster" > /dev/null
  associations > "$T/associations" || { problem accounting "slurmdbd does not answer: $(manager_error)"; return 0; }
  # Another cluster of the same slurmdbd may have people in it still.
  [ -n "$(manager -nP show assoc "account=$organization" format=cluster)" ] || manager -i delete account "name=$organization" > /dev/null
  [ ! -s "$T/associations" ] || problem accounting "the Slurm account $organization cannot be removed: $(manager_error)"
}

# Comma-separated names on standard input, at most 400 in a call.
in_batches() { tr ',' '\n' | sed '/^$/d' | xargs -n 400 | while read -r batch; do "$1" "$(echo "$batch" | tr ' ' ',')"; done; }
add_associations() { manager -i add user "$1" "cluster=$cluster" "account=$organization" > /dev/null; }

# Jobs first: an association with active jobs is not removed.
remove_associations() {
  end_jobs "$T/leave"
  paste -s -d ',' "$T/leave" | in_batches drop_associations
}
drop_associations() {
  manager -i delete user "name=$1" "cluster=$cluster" "account=$organization" > /dev/null
}
end_jobs() {
  local names tries
  names=$(paste -s -d ',' "$1")
  for tries in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    timeout 10 squeue -h -u "$names" -o %A 2> /dev/null | sort -u > "$T/jobs"
    [ -s "$T/jobs" ] || return 0
    xargs timeout 10 scancel < "$T/jobs" > /dev/null 2>&1
    sleep 0.5
  done
}
`;
