/**
 * Slurm accounting, run on the controller: one account for each organization, one association for each person, in few calls.
 * An association has the site's settings for the person and their used share, so it is deleted only with the person. A person
 * without a key keeps it, closed by GrpSubmitJobs=0, and by GrpJobs=0 where a QOS overrides that with its own GrpSubmitJobs.
 * What a site had set of these before is noted when we close its association, and put back; one that the site closed stays closed.
 */
export const accounting = String.raw`
manager() { timeout 30 sacctmgr "$@" < /dev/null 2> "$T/manager" 9>&-; }
manager_error() { one_line < "$T/manager"; }
has_accounting() {
  case $(conf_value AccountingStorageType) in '' | accounting_storage/none) return 1 ;; esac
}
associations() { associations_in "$account"; }
# With the values that each has of its own.
associations_in() {
  manager -nP show assoc WOPLimits "cluster=$cluster" "account=$1" format=user,account,grpsubmitjobs,grpjobs,fairshare,maxjobs,grptres,defaultqos,qos
}
find_account() { cluster=$(conf_value ClusterName); row slurm-account; account=$line; }

# Of adopted people in other accounts, in $T/others: they are closed, too, while those people are gone.
find_others() { # NOTES
  : > "$T/others"
  cat "$S/closed" > "$T/closed" 2> /dev/null
  awk -v account="$account" 's == "adopted" { adopted[$1] = 1; next } s == "ours" { if ($1 in adopted && $3 == "locked") print $1; next }
    $2 != account { print $1 }' FS='\t' s=adopted "$T/kept" s=ours "$1" FS=' ' s=closed "$T/closed" | sort -u > "$T/elsewhere-too"
  in_calls < "$T/elsewhere-too" | while read -r names; do
    manager -nP show assoc WOPLimits "cluster=$cluster" "user=$names" format=user,account,grpsubmitjobs,grpjobs || exit 1
  done > "$T/others"
}
find_associations() { associations > "$T/associations" && find_others "$1"; } # NOTES

# What is to be done, one a line, from our notes, from $T/keep, whose associations stay when they are locked, and from $T/associations and
# $T/others: add|drop NAME, open NAME ACCOUNT GRPSUBMITJOBS GRPJOBS, close NAME ACCOUNT with the same of one that a site made. Those of
# other installations that look after this controller are theirs, as are in an account of the site's all that we did not add. Those that
# the site has closed are in $T/closed-by-site.
plan_associations() { # NOTES
  cat "$S/associated" > "$T/associated" 2> /dev/null
  cat "$T/handed" > "$T/handed-back" 2> /dev/null
  : > "$T/closed-by-site"
  awk '
    function value(text) { return text == "" ? -1 : text }
    function close_it() { if (value($3) != 0 || value($4) != 0) print "close", $1, $2, is_ours ? "" : value($3) " " value($4) }
    function put_back(  key, submit, jobs) {
      key = $1 SUBSEP $2; submit = value($3); jobs = value($4)
      if (!is_ours && !(key in submits)) { if (submit == 0 || jobs == 0) print $1 > by_site; return }
      if (submit == 0) submit = is_ours ? -1 : submits[key]
      if (jobs == 0) jobs = is_ours ? -1 : runs[key]
      if (submit != value($3) || jobs != value($4)) print "open", $1, $2, submit, jobs
    }
    s == "noted" { noted[$1] = 1; next }
    s == "keep" { keep[$1] = 1; next }
    s == "added" { added[$1] = 1; next }
    s == "adopted" { adopted[$1] = 1; next }
    s == "handed" { handed[$1] = 1; next }
    s == "ours" { state[$1] = $3; next }
    s == "closed" { submits[$1, $2] = $3; runs[$1, $2] = $4; next }
    $1 == "" { next }
    s == "others" {
      is_ours = 0
      if ($2 == account || !($1 in adopted)) next
      if (state[$1] == "locked") close_it()
      else if (($1, $2) in submits && (state[$1] == "ready" || $1 in handed)) put_back()
      next
    }
    { has[$1] = 1; is_ours = own || $1 in added }
    state[$1] == "ready" { put_back(); next }
    state[$1] == "" && $1 in noted { next }
    # Of a person of the site whose account is not ours yet.
    $1 in keep { if (is_ours || state[$1] != "") close_it(); next }
    is_ours { print "drop", $1; next }
    # Of an adopted person in an account of the site.
    $1 in handed { put_back(); next }
    $1 in adopted && state[$1] != "" { close_it() }
    END { for (name in state) if (state[name] == "ready" && !(name in has)) print "add", name }' \
    own="$(is_own_account && echo 1)" account="$account" by_site="$T/closed-by-site" FS='\t' s=noted "$T/noted" s=keep "$T/keep" \
    s=added "$T/associated" s=adopted "$T/kept" s=handed "$T/handed-back" s=ours "$1" FS=' ' s=closed "$T/closed" \
    FS='|' s= "$T/associations" s=others "$T/others" | sort -u
}

apply_accounting() {
  has_accounting || return 0
  find_account
  : > "$S/accounting-pending"
  find_associations "$people" || { problem accounting "slurmdbd does not answer: $(manager_error)"; return 0; }
  if ! grep -q "^|" "$T/associations"; then
    add_account || return 0
  elif ! is_own_account; then
    find_owner || return 0
  fi
  { rows member; rows account | cut -f 1; } > "$T/keep"
  plan_associations "$people" > "$T/plan"
  if [ -s "$T/plan" ] && ! edit_planned; then
    problem accounting "associations are not as they should be yet: $(head -n 5 "$T/plan" | one_line) $(manager_error)"
  else
    forget_opened
    if leave_account && apply_limits; then rm -f "$S/accounting-pending"; fi
  fi
}

# Before they are closed: what the site had set. A value of 0 is ours where there is a note.
note_closed() {
  grep -q '^close [^ ]* [^ ]* [^ ]' "$T/plan" || return 0
  awk '
    s == "closed" { submit[$1 " " $2] = $3; jobs[$1 " " $2] = $4; next }
    $1 == "close" && NF == 5 {
      key = $2 " " $3
      if ($4 != 0 || !(key in submit)) submit[key] = $4
      if ($5 != 0 || !(key in jobs)) jobs[key] = $5
    }
    END { for (key in submit) print key, submit[key], jobs[key] }' s=closed "$T/closed" s=plan "$T/plan" | sort | keep "$S/closed"
}
forget_opened() {
  [ -s "$S/closed" ] || return 0
  awk -F '\t' '$3 == "ready" { print $1 }' "$people" | cat - "$T/handed-back" > "$T/opened"
  awk 's == "opened" { opened[$1] = 1; next } !($1 in opened)' s=opened "$T/opened" s= "$S/closed" > "$T/closed"
  cmp -s "$T/closed" "$S/closed" || keep "$S/closed" < "$T/closed"
}

# Whether nothing is left of the plan afterwards.
edit_planned() {
  note_closed
  sed -n 's/^add //p' "$T/plan" | in_calls | while read -r names; do edit_associations add "$names"; done
  # Those with the same values take one call.
  awk '$1 ~ /^(open|close)$/ { print $3 ($1 == "close" ? " 0 0" : " " $4 " " $5) "\t" $2 }' "$T/plan" | sort > "$T/limiting"
  cut -f 1 "$T/limiting" | uniq | while read -r where submit jobs; do
    awk -F '\t' -v values="$where $submit $jobs" '$1 "" == values { print $2 }' "$T/limiting" | in_calls |
      while read -r names; do limit_jobs "$where" "$submit" "$jobs" "$names"; done
  done
  sed -n 's/^drop //p' "$T/plan" | in_calls | while read -r names; do edit_associations drop "$names"; done
  find_associations "$people" && plan_associations "$people" > "$T/plan" && [ ! -s "$T/plan" ]
}

is_own_account() { first "$S/own-account"; [ "$line" = "$account" ]; }
# Whose the account is: ours has our description, and its people are those that we put there. One of the site's must be named as such.
find_owner() {
  description=$(manager -nP show account "name=$account" format=description) || return 1
  case $description in
    '') return 0 ;;
    andromeda) echo "$account" | keep "$S/own-account" ;;
    *) has_row account-of site || { problem accounting "the Slurm account $account is there already and is not ours"; return 1; } ;;
  esac
}
add_account() {
  find_owner || return 1
  parent=$(rows account-parent)
  set -- "$account" "cluster=$cluster"
  [ -z "$parent" ] || set -- "$@" "parent=$parent"
  [ -n "$description" ] || set -- "$@" Description=andromeda Organization=andromeda
  manager -i add account "$@" > /dev/null || { problem accounting "the Slurm account $account cannot be made: $(manager_error)"; return 1; }
  [ -n "$description" ] || echo "$account" | keep "$S/own-account"
}

# Names as one call takes them.
in_calls() { xargs -r -n 400 | tr ' ' ','; }

# From the account that was named before: people have the new one by now.
leave_account() {
  first "$S/slurm-account"; before=$line
  [ -n "$before" ] || before=$account
  if [ "$before" != "$account" ]; then
    associations_in "$before" > "$T/left" || return 1
    cat "$T/keep" "$T/associated" | sort -u > "$T/ours-there"
    cut -d '|' -f 1 "$T/left" | grep -xFf "$T/ours-there" > "$T/moved"
    cut -d '|' -f 1 "$T/associations" | sort -u > "$T/here"
    # Those without a key have none here yet.
    grep -vxFf "$T/here" "$T/moved" | in_calls | while read -r names; do edit_associations add "$names" && limit_jobs "$account" 0 0 "$names"; done
    in_calls < "$T/moved" | while read -r names; do
      manager -i modify user where "name=$names" "cluster=$cluster" set "DefaultAccount=$account" > /dev/null
    done
    in_calls < "$T/moved" | while read -r names; do
      manager -i delete user "name=$names" "cluster=$cluster" "account=$before" > /dev/null || cp "$T/manager" "$T/unmoved"
    done
    associations_in "$before" > "$T/left" || return 1
    ! cut -d '|' -f 1 "$T/left" | grep -qxFf "$T/moved" ||
      { problem accounting "people cannot leave the account $before yet: $(one_line < "$T/unmoved")"; return 1; }
    [ "$(manager -nP show account "name=$before" format=description)" != andromeda ] || delete_account "$before"
  fi
  keep_line "$S/slurm-account" "$account"
}
# One of ours without people, where no other cluster of this slurmdbd has any.
delete_account() { # NAME
  associations_in "$1" > "$T/left" || return 1
  ! grep -q '^[^|]' "$T/left" || return 0
  manager -i delete account "name=$1" "cluster=$cluster" > /dev/null
  [ -n "$(manager -nP show assoc "account=$1" format=cluster)" ] || manager -i delete account "name=$1" > /dev/null
}
limit_jobs() { # ACCOUNT GRPSUBMITJOBS GRPJOBS NAMES
  manager -i modify user where "name=$4" "cluster=$cluster" "account=$1" set "GrpSubmitJobs=$2" "GrpJobs=$3" > /dev/null
}
edit_associations() { # add|drop NAMES, at most 400 in a call
  case $1 in
    add) { cat "$T/associated"; echo "$2" | tr , '\n'; } | sort -u | keep "$S/associated"; manager -i add user "$2" "cluster=$cluster" "account=$account" GrpSubmitJobs=-1 GrpJobs=-1 ;;
    drop) manager -i delete user "name=$2" "cluster=$cluster" "account=$account" ;;
  esac > /dev/null
}

# GPU time on one day, from its first second to its last, or to now, as jobs were given GPUs.
observe_gpu_day() {
  has_rows gpu-day || return 0
  read -r day from to < "$T/row.gpu-day"
  SLURM_TIME_FORMAT=%s timeout 5 sacct -aXnP -S "$(date -d "@$from" +%FT%T)" -E "$(date -d "@$to" +%FT%T)" \
    -o user,start,end,alloctres < /dev/null > "$T/jobs" 2> /dev/null 9>&- || return 0
  emit gpu-day "$day"
  awk -F '|' -v day="$day" -v from="$from" -v to="$to" '
    match($4, /(^|,)gres\/gpu=[0-9]+/) {
      gpus = substr($4, RSTART, RLENGTH); sub(/.*=/, "", gpus)
      start = $2 < from ? from : $2; end = ($3 !~ /^[0-9]+$/ || $3 > to) ? to : $3
      if ($2 ~ /^[0-9]+$/ && end > start) sum[$1] += gpus * (end - start)
    }
    END { for (user in sum) printf "gpu-seconds\t%s\t%s\t%d\n", day, user, sum[user] }' "$T/jobs"
}

release_accounting() {
  has_accounting || return 0
  apply_accounting
  case $failed in *' accounting '*) return 0 ;; esac
  is_own_account || return 0
  # Another installation of the organization may have people in it.
  delete_account "$account" && associations > "$T/associations" || { problem accounting "slurmdbd does not answer: $(manager_error)"; return 0; }
  [ ! -s "$T/associations" ] || grep -q '^[^|]' "$T/associations" ||
    problem accounting "the Slurm account $account cannot be removed: $(manager_error)"
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
    locked_jobs "$people" > "$T/jobs"
    [ -s "$T/jobs" ] || return 0
    xargs timeout 10 scancel < "$T/jobs" > /dev/null 2>&1
    sleep 0.5
  done
}

# Values of the Slurm account, of people in it, and its coordinators, as the lab file has them. What was set by hand is neither
# overwritten nor taken back, but shown: only a value that is unset, or is as we set it last ($S/limits), is ours to change.
limit_names='Fairshare MaxJobs GrpTRES DefaultQOS QOS'
# Of $T/associations, one a line: entity (. is the account), name, value.
limits_now() {
  awk -F '|' -v names="$limit_names" 'BEGIN { split(names, name, " ") }
    { for (i = 5; i <= NF; i++) print ($1 == "" ? "." : $1), name[i - 4], (name[i - 4] == "Fairshare" && $i == 1 ? "" : $i) }' \
    OFS='\t' "$T/associations" > "$T/limits-now"
}

# What is to be done with each value that is wanted or was: set|unset|hand|same ENTITY NAME VALUE [OTHER]
plan_limits() { # WANTED
  cat "$S/limits" > "$T/limits-noted" 2> /dev/null
  awk -F '\t' '
    function sorted(list, parts, n, i, j, swap) {
      n = split(list, parts, ",")
      for (i = 1; i <= n; i++) if (parts[i] ~ /^mem=/) parts[i] = "mem=" mebibytes(substr(parts[i], 5))
      for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (parts[j] < parts[i]) { swap = parts[i]; parts[i] = parts[j]; parts[j] = swap }
      list = ""
      for (i = 1; i <= n; i++) list = list (i > 1 ? "," : "") parts[i]
      return list
    }
    # Slurm writes 2048000 as 2000G.
    function mebibytes(text, at) {
      at = index("MGTP", substr(text, length(text)))
      return at ? sprintf("%.0f", substr(text, 1, length(text) - 1) * 1024 ^ (at - 1)) : text
    }
    # What one list of resources has and the other does not is taken away by -1.
    function without(old, new, parts, n, i, name, all) {
      n = split(old, parts, ",")
      for (i = 1; i <= n; i++) { name = parts[i]; sub(/=.*/, "", name); if (index("," new, "," name "=") == 0) all = all "," name "=-1" }
      return new == "" ? substr(all, 2) : new all
    }
    s == "now" { now[$1, $2] = sorted($3); here[$1] = 1; next }
    s == "noted" { noted[$1, $2] = sorted($3); next }
    { want[$1, $2] = sorted($3) }
    END {
      for (key in want) {
        split(key, of, SUBSEP)
        if (!(of[1] in here)) continue
        if (now[key] == want[key]) print "same", of[1], of[2], want[key]
        else if (now[key] != "" && now[key] != noted[key] || key in noted && noted[key] == want[key]) print "hand", of[1], of[2], now[key], want[key]
        else print "set", of[1], of[2], of[2] == "GrpTRES" ? without(now[key], want[key]) : want[key], want[key]
      }
      for (key in noted) {
        split(key, of, SUBSEP)
        if (key in want || !(of[1] in here) || now[key] == "" || now[key] != noted[key]) continue
        print "unset", of[1], of[2], of[2] == "GrpTRES" ? without(now[key], "") : of[2] == "Fairshare" ? 1 : of[2] == "QOS" ? "" : -1
      }
    }' OFS='\t' s=now "$T/limits-now" s=noted "$T/limits-noted" s=wanted "$1" | sort
}

apply_limits() {
  rows limit > "$T/limits"
  [ -s "$T/limits" ] || [ -f "$S/limits" ] || has_rows coordinator || [ -f "$S/coordinators" ] || return 0
  keep "$S/limits-wanted" < "$T/limits"
  associations > "$T/associations" && limits_now && plan_limits "$T/limits" > "$T/limit-plan" || return 1
  # Before they are set, so that they are known as ours where we are cut off behind that.
  { cat "$S/limits-setting" 2> /dev/null; grep '^set' "$T/limit-plan"; } | sort -u | keep "$S/limits-setting"
  # Those of several people that are the same take one call.
  awk -F '\t' '/^(set|unset)/ { key = $3 "=" $4; if ($2 == ".") print ".", key; else all[key] = all[key] (all[key] == "" ? "" : ",") $2 }
    END { for (key in all) print all[key], key }' OFS='\t' "$T/limit-plan" > "$T/limit-calls"
  while IFS="$tab" read -r who what; do
    case $who in
      .) manager -i modify account where "name=$account" "cluster=$cluster" set "$what" > /dev/null ;;
      *) manager -i modify user where "name=$who" "cluster=$cluster" "account=$account" set "$what" > /dev/null ;;
    esac || problem accounting "Slurm does not take $what: $(manager_error)"
  done < "$T/limit-calls"
  associations > "$T/associations" && limits_now && plan_limits "$T/limits" > "$T/limit-after" || return 1
  # Ours are those that we set, now or before. What was so by hand already is not.
  awk -F '\t' '
    { key = $2 SUBSEP $3 }
    s == "noted" { noted[$1, $2] = $3; next }
    s == "plan" { if ($1 == "set") tried[key] = 1; next }
    $1 == "same" && (key in tried || key in noted) { print $2, $3, $4; next }
    key in noted { print $2, $3, noted[key] }' \
    OFS='\t' s=noted "$T/limits-noted" s=plan "$S/limits-setting" s=after "$T/limit-after" | keep "$S/limits"
  rm -f "$S/limits-setting"
  ! grep -q '^set\|^unset' "$T/limit-after" || problem accounting "limits are not as they should be yet: $(grep '^set\|^unset' "$T/limit-after" | head -n 3 | one_line)"
  case $failed in *' accounting '*) return 1 ;; esac
  apply_coordinators && rows limits | keep "$S/limits-digest"
}

# Those that were added by hand stay. Who has no association yet, for want of a key, waits for it; one whom Slurm does not take holds
# up no other.
apply_coordinators() {
  local name
  rows coordinator | sort > "$T/coordinators"
  cat "$S/coordinators" > "$T/coordinators-noted" 2> /dev/null
  manager -nP show account withcoord "name=$account" format=coordinators | tr , '\n' | sort > "$T/coordinators-now" || return 1
  cut -d '|' -f 1 "$T/associations" | sort -u | comm -12 - "$T/coordinators" | comm -23 - "$T/coordinators-now" > "$T/coordinators-new"
  comm -23 "$T/coordinators-noted" "$T/coordinators" | comm -12 - "$T/coordinators-now" > "$T/coordinators-old"
  comm -12 "$T/coordinators-noted" "$T/coordinators" > "$T/coordinators-done"
  while read -r name; do edit_coordinator add "$name" && echo "$name" >> "$T/coordinators-done"; done < "$T/coordinators-new"
  while read -r name; do edit_coordinator delete "$name" || echo "$name" >> "$T/coordinators-done"; done < "$T/coordinators-old"
  sort "$T/coordinators-done" | keep "$S/coordinators"
  case $failed in *' accounting '*) return 1 ;; esac
}
edit_coordinator() { manager -i "$1" coordinator "account=$account" "name=$2" > /dev/null || { problem accounting "$(manager_error)"; return 1; }; } # add|delete NAME

# What is set, with what the lab file has where that is another value.
observe_limits() {
  row limits; wanted=$line
  first "$S/limits-digest"; [ "$line" = "$wanted" ] || emit drift 'limits are not as the lab file has them'
  limits_now
  cat "$S/limits-wanted" > "$T/limits" 2> /dev/null
  plan_limits "$T/limits" > "$T/limit-plan"
  ! grep -q '^set\|^unset' "$T/limit-plan" || emit drift 'limits are not as they should be'
  awk -F '\t' 's == "plan" { if ($1 == "hand") { hand[$2, $3] = $5; if ($4 == "") print "limit", $2, $3, "", $5 } next }
    $3 != "" && ++count <= 500 { print "limit", $1, $2, $3 (($1, $2) in hand ? OFS hand[$1, $2] : "") }' OFS='\t' s=plan "$T/limit-plan" s= "$T/limits-now"
}
`;
