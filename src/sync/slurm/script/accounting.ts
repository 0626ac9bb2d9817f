/**
 * Slurm accounting, from the controller: one account an organization, one association a person, in few calls. An association holds
 * what the site set for the person and what they used of their share, so that it goes only with the person: who has no key for
 * a while keeps it, closed by GrpSubmitJobs=0, and GrpJobs=0 where a QOS has a GrpSubmitJobs that holds in its place. These are no
 * limits that a site sets for one person (MaxSubmitJobs and MaxJobs are), so that there is nothing to remember.
 */
export const accounting = String.raw`
manager() { timeout 30 sacctmgr "$@" < /dev/null 2> "$T/manager" 9>&-; }
manager_error() { one_line < "$T/manager"; }
has_accounting() {
  case $(conf_value AccountingStorageType) in '' | accounting_storage/none) return 1 ;; esac
}
associations() { manager -nP show assoc "cluster=$cluster" "account=$organization" format=user,account,grpsubmitjobs,grpjobs; }

# What is to be done, one a line (add|open|close|drop NAME), from our notes, from $T/keep, whose associations stay when they are
# locked, and from $T/associations. Those of other installations that look after this controller are theirs.
plan_associations() { # NOTES
  awk '
    s == "noted" { noted[$1] = 1; next }
    s == "keep" { keep[$1] = 1; next }
    s == "ours" { state[$1] = $3; next }
    $1 == "" { next }
    { has[$1] = 1; limits = ($3 == "0") + ($4 == "0") }
    $1 in state && state[$1] == "ready" { if (limits > 0) print "open", $1; next }
    !($1 in state) && $1 in noted { next }
    $1 in keep { if (limits < 2) print "close", $1; next }
    { print "drop", $1 }
    END { for (name in state) if (state[name] == "ready" && !(name in has)) print "add", name }' \
    FS='\t' s=noted "$T/noted" s=keep "$T/keep" s=ours "$1" FS='|' s= "$T/associations" | sort -u
}

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
  { rows member; rows account | cut -f 1; } > "$T/keep"
  plan_associations "$S/accounts" > "$T/plan"
  for what in add open close drop; do
    sed -n "s/^$what //p" "$T/plan" | xargs -r -n 400 | tr ' ' ',' | while read -r names; do edit_associations $what "$names"; done
  done
  associations > "$T/associations" && plan_associations "$S/accounts" > "$T/plan"
  if [ $? -eq 0 ] && [ ! -s "$T/plan" ]; then rm -f "$S/accounting-pending"
  else problem accounting "associations are not as they should be yet: $(head -n 5 "$T/plan" | one_line) $(manager_error)"; fi
}
edit_associations() { # add|open|close|drop NAMES, at most 400 in a call
  case $1 in
    add) manager -i add user "$2" "cluster=$cluster" "account=$organization" GrpSubmitJobs=-1 GrpJobs=-1 ;;
    open) manager -i modify user where "name=$2" "cluster=$cluster" "account=$organization" set GrpSubmitJobs=-1 GrpJobs=-1 ;;
    close) manager -i modify user where "name=$2" "cluster=$cluster" "account=$organization" set GrpSubmitJobs=0 GrpJobs=0 ;;
    drop) manager -i delete user "name=$2" "cluster=$cluster" "account=$organization" ;;
  esac > /dev/null
}

release_accounting() {
  has_accounting || return 0
  apply_accounting
  case $failed in *' accounting '*) return 0 ;; esac
  # Another installation of the organization has people in it.
  ! grep -q '^[^|]' "$T/associations" || return 0
  manager -i delete account "name=$organization" "cluster=$cluster" > /dev/null
  associations > "$T/associations" || { problem accounting "slurmdbd does not answer: $(manager_error)"; return 0; }
  # Another cluster of the same slurmdbd may have people in it still.
  [ -n "$(manager -nP show assoc "account=$organization" format=cluster)" ] || manager -i delete account "name=$organization" > /dev/null
  [ ! -s "$T/associations" ] || problem accounting "the Slurm account $organization cannot be removed: $(manager_error)"
}

# Jobs of those who are locked: nothing but our lock keeps them out where Slurm enforces no limits, or has no accounting.
locked_jobs() { # NOTES
  local uids
  uids=$(locked_uids "$1")
  [ -z "$uids" ] || timeout 10 squeue -h -t pending,running,suspended -o '%U %A' 2> /dev/null |
    awk -v uids="$uids" 'BEGIN { split(uids, list, ","); for (i in list) locked[list[i]] = 1 } $1 in locked { print $2 }' | sort -u
}
end_jobs() {
  local tries
  for tries in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    locked_jobs "$S/accounts" > "$T/jobs"
    [ -s "$T/jobs" ] || return 0
    xargs timeout 10 scancel < "$T/jobs" > /dev/null 2>&1
    sleep 0.5
  done
}
`;
