/** People of a host who come from the site's directory (sssd, NIS): they are looked up there, and no account file is written. */
export const directory = String.raw`
# From the row, or where a host left the settings from what it was.
from_directory() { has_row accounts directory || { ! has_rows accounts && [ -f "$S/directory" ]; }; }

# A directory that does not answer says "no such person" (sssd that is offline), or nothing for seconds. Neither means that a person
# is gone. The time is short, as a host that takes long counts as down.
look_up() { timeout 4 xargs -r -n 10 -P 4 getent passwd < "$1"; [ $? != 124 ] || slow=1; } # FILE
# The next answer about these is the directory's own, and not an earlier one.
expire_entries() { shuf -n 20 "$1" | while read -r name; do sss_cache -u "$name"; done > /dev/null 2>&1 9>&-; } # FILE

# Whether the directory answers now, shown by a person whose entry is read anew: offline, sssd answers from its cache as well, and the
# entry stays expired.
answers_anew() {
  local name
  name=$(awk -F: 's == "passwd" { here[$1] = 1; next } !($1 in here) { print $1; exit }' s=passwd /etc/passwd s= "$T/people")
  [ -n "$name" ] || return 1
  { sss_cache -u "$name" || nscd -i passwd; } > /dev/null 2>&1 9>&-
  timeout 4 getent passwd "$name" > /dev/null || return 1
  ! command -v sss_cache > /dev/null ||
    timeout 4 sssctl user-show "$name" 2> /dev/null 9>&- | sed -n 's/^Cache entry expiration time: *//p' | grep -qv Expired
}

# Lines of a name and Success, a refusal, or nothing. sssctl says it in its text alone: it ends with 0 each time.
ask_pam() { # FILE SECONDS
  timeout "$2" xargs -r -n 1 -P 8 sh -c '
    if command -v sssctl > /dev/null; then said=$(timeout 5 sssctl user-checks "$0" -a acct -s sshd 2>&1 | sed -n "s/^pam_acct_mgmt: //p")
    else said=$(timeout 5 su -s /bin/sh "$0" -c true 2>&1) && said=Success; fi
    printf "%s\t%s\n" "$0" "$(printf %s "$said" | tr "\n\t" "  " | cut -c 1-200)"' < "$1" 2> /dev/null 9>&-
}

# What is so of each who is wanted, in $T/todo: name, uid, ready or held, ID, shell, gid, and why they are held. A uid of 0 is
# not known yet: what is found is in $T/numbers, for the service to keep.
plan_directory() { # SECONDS, at most, for PAM
  local answers=''
  slow=''
  for file in known others people asked pam numbers; do : > "$T/$file"; done
  awk -F '\t' 's == "ours" { state[$1] = $3; next } { print $1 > (prefix (state[$1] == "ready" ? "known" : "others")) }' \
    prefix="$T/" s=ours "$T/ours" s=wanted "$T/wanted"
  expire_entries "$T/others"
  { look_up "$T/known"; look_up "$T/others"; } > "$T/people" 2> /dev/null
  if [ -z "$slow" ] && [ "$(wc -l < "$T/people")" -lt "$(wc -l < "$T/wanted")" ] && answers_anew; then answers=1; fi
  [ -n "$slow" ] || ! has_row role login || ask_some "$1"
  powerful_groups > "$T/powerful"
  awk -v answers="$answers" -v is_login="$(! has_row role login || echo 1)" '
    function held(message) { print $1, $2, "held", $3, $4, $5, message }
    function ready() { print $1, $2, "ready", $3, $4, $5, "" }
    s == "ours" { state[$1] = $3; why[$1] = $7; next }
    s == "asked" { asked[$1] = 1; next }
    s == "pam" { said[$1] = $2; next }
    s == "numbers" { if ($2 > 0) person[$2] = $1; next }
    s == "passwd" { here[$1] = 1; owner[$3] = $1; next }
    s == "powerful" { root[$3] = $1; next }
    s == "people" { uid[$1] = $3; gid[$1] = $4; next }
    $1 in here { held("the account " $1 " is in /etc/passwd of this host, whose people come from the directory"); next }
    !($1 in uid) && answers { held("the directory has no account " $1); next }
    !($1 in uid) && state[$1] == "ready" { ready(); next }
    !($1 in uid) { held("it is not known whether the directory has an account " $1 ", as it does not answer"); next }
    { found = uid[$1] }
    found in owner { held("the uid " found " of " $1 " belongs to the account " owner[found] " of this host"); next }
    found in person && person[found] != $1 { held("the directory has the uid " found " for " $1 ", and it is that of " person[found]); next }
    $2 == 0 && (found < 1 || found > 2147483647 || gid[$1] < 1 || gid[$1] > 2147483647) {
      held("the directory has the uid " found " and the gid " gid[$1] " for " $1 ", which no person can have"); next
    }
    $2 == 0 && gid[$1] in root { held("the directory has the gid " gid[$1] " for " $1 ", and members of the group " root[gid[$1]] " may become root"); next }
    $2 == 0 { print $3, $1, found, gid[$1] > numbers; held(""); next }
    found != $2 { held("the directory has the uid " found " for " $1 ", who has " $2 " for good"); next }
    !is_login || said[$1] == "Success" { ready(); next }
    said[$1] != "" && said[$1] !~ /cannot retrieve authentication info|System error/ { held($1 " may not log in: " said[$1]); next }
    state[$1] == "ready" { ready(); next }
    why[$1] != "" && !($1 in asked) { held(why[$1]); next }
    { held("it is not known whether " $1 " may log in: " (said[$1] == "" ? "PAM does not answer" : said[$1])) }' \
    OFS='\t' numbers="$T/numbers" FS='\t' s=ours "$T/ours" s=asked "$T/asked" s=pam "$T/pam" s=numbers "$T/wanted" \
    FS=: s=passwd /etc/passwd s=powerful "$T/powerful" s=people "$T/people" FS='\t' s=wanted "$T/wanted" > "$T/todo"
}

# One person costs several processes: all who are not ready are asked about, those whom the last look saw otherwise, and a few others.
ask_some() { # SECONDS
  cat "$S/suspects" > "$T/suspects" 2> /dev/null
  awk 's == "known" { known[$1] = 1; ready++; next } s == "suspects" { delete known[$1]; next } s == "wanted" { uid[$1] = $2; next }
    BEGIN { srand() }
    $3 == uid[$1] && ($1 in known ? rand() * ready < 8 : ++others <= 10 * seconds) { print $1 }' \
    seconds="$1" s=known "$T/known" s=suspects "$T/suspects" FS='\t' s=wanted "$T/wanted" FS=: s= "$T/people" > "$T/asked"
  ask_pam "$T/asked" "$1" > "$T/pam"
}

apply_directory() {
  rows account > "$T/wanted"
  recall_accounts
  plan_directory 60
  planned=1
  leave_directory > "$T/left"
  sort "$T/todo" "$T/left" | keep "$S/directory"
  rm -f "$S/suspects"
  end_processes
  ! directory_homes || make_homes
}
# Homes are the site's, unless the settings say how they are made.
directory_homes() { has_rows homes || has_rows make-home; }

# Those who left, with the number that was theirs; not where another person has it by now, or another cluster has people of that number here.
leave_directory() {
  awk -F '\t' 's == "wanted" { wanted[$1] = 1; next } !($1 in wanted) && $2 > 0 { print $1, $2, "locked", $4, $5, $6, "" }' OFS='\t' \
    s=wanted "$T/wanted" s= "$T/ours" > "$T/leaving"
  cut -f 2 "$T/leaving" > "$T/uids"
  look_up "$T/uids" > "$T/owners" 2> /dev/null
  for file in /var/lib/andromeda-slurm/*/directory; do [ ! -f "$file" ] || [ "$file" = "$S/directory" ] || cat "$file"; done > "$T/shared"
  awk 's == "todo" { if ($3 != "locked") taken[$2] = 1; next } s == "owners" { owner[$3] = $1; next }
    !($2 in taken) && (!($2 in owner) || owner[$2] == $1)' \
    FS='\t' s=todo "$T/todo" "$T/shared" FS=: s=owners "$T/owners" FS='\t' s= "$T/leaving"
}

observe_directory() {
  local uids
  awk -F '\t' '$3 != "locked" && $4 != "-" { print $1, $2, $4, $5, $6 }' OFS='\t' "$T/ours" > "$T/wanted"
  # What an apply has found just now is so.
  [ -n "$planned" ] || plan_directory 6
  : > "$T/suspects"
  sed "s/^/number$tab/" "$T/numbers"
  awk '
    s == "ours" { state[$1] = $3; next }
    s == "people" { shell[$1] = $7; next }
    $3 == "held" { if ($7 == "") print "absent", $4, $1; else print "conflict", $4, $1, $2, $7 }
    $1 in shell && shell[$1] != $5 && !missing[$5]++ { print "missing-shell", $5 }
    $3 == state[$1] { next }
    { print $1 > suspects }
    ++drifts <= 5 { print "drift", ($3 == "held" ? "something stands in the way of " $1 : "what stood in the way of " $1 " is gone") }' \
    OFS='\t' suspects="$T/suspects" FS='\t' s=ours "$T/ours" FS=: s=people "$T/people" FS='\t' s=todo "$T/todo"
  [ ! -s "$T/suspects" ] || cat "$T/suspects" > "$S/suspects"
  [ -n "$slow" ] || notice_groups
  ! directory_homes || observe_homes
  uids=$(locked_uids "$T/ours")
  [ -z "$uids" ] || ! has_processes "$uids" || emit drift 'someone who left has a process'
}

powerful_groups() { { timeout 2 getent group $powerful; timeout 2 getent -s sss group $powerful; } 2> /dev/null; }
notice_groups() {
  powerful_groups | awk -F '[:,\t]' '
    s == "ours" { ours[$1] = 1; next }
    { for (i = 4; i <= NF; i++) if ($i in ours && !said[$1, $i]++ && ++notices <= 5) print "notice\t" $i " is in the group " $1 }' s=ours "$T/ours" s= -
}
`;
