/**
 * Accounts that were on a host before us and are ours by name and numbers. Adopting one changes nothing but our notes: $S/kept has what it
 * had in the fields that we may change later, so that they can be handed back. $S/spared: accounts that were found unfit.
 */
export const adoption = String.raw`
# Files that the site copies from another host, where they are written.
is_copy() { has_row accounts copied; }
say_old_copy() {
  has_row action release ||
    problem account "the account files are copied here, and are not current for $(cut -f 2 "$T/edits" | head -n 5 | one_line)"
}

# Names of accounts that may become root, and by what, in $T/privileged.
find_privileged() {
  cat /etc/sudoers /etc/sudoers.d/* 2> /dev/null | sed "s/^[ $tab]*#.*//" | tr -cs 'A-Za-z0-9_.%-' '\n' > "$T/sudoers"
  awk -F '[:,]' '
    s == "sudoers" { if (sub(/^%/, "")) group[$0] = 1; else print $0, "named in sudoers"; next }
    s == "passwd" { if ($4 in gid) print $1, "in the group " gid[$4]; next }
    $1 in group || $1 ~ /^(root|sudo|wheel|admin|docker|lxd|disk|shadow)$/ {
      gid[$3] = $1
      for (i = 4; i <= NF; i++) print $i, "in the group " $1
    }' OFS='\t' s=sudoers "$T/sudoers" s=group /etc/group s=passwd /etc/passwd > "$T/privileged"
}

# Of $T/plan: accounts to adopt that are unfit become conflicts.
check_adoptions() {
  grep -q '^adopt' "$T/plan" || return 0
  find_privileged
  awk -F '\t' '$1 == "adopt" && $6 != "/home/" $2 { print $2 ":" $6 }' "$T/plan" | while IFS=: read -r name home; do
    [ "$home" -ef "/home/$name" ] || echo "$name:$home"
  done > "$T/elsewhere"
  awk '
    s == "noted" { noted[$1] = 1; next }
    s == "privileged" { privileged[$1] = $2; next }
    s == "elsewhere" { home[$1] = $2; next }
    $1 != "adopt" || $7 == "copied" { print; next }
    { why = $8 }
    $2 in privileged && $7 != "privileged" { why = $2 " is " privileged[$2] ", and not in adoptPrivileged" }
    $2 in home { why = "the home of " $2 " is " home[$2] " (ln -s " home[$2] " /home/" $2 ")" }
    $2 in noted { why = "the account " $2 " (uid " $3 ") is there already and is not ours" }
    why == "" { print; next }
    { print "conflict", $2, $3, $4, why, $5, $7, "", $9 }' OFS='\t' FS='\t' s=noted "$T/noted" s=privileged "$T/privileged" \
    FS=: s=elsewhere "$T/elsewhere" FS='\t' s=plan "$T/plan" > "$T/checked"
  mv -f "$T/checked" "$T/plan"
}

# Those who were adopted once and are to have no account, in $T/former; but for accounts that were found unfit here, in $T/due.
find_former() {
  : > "$T/taken"; : > "$T/due"
  # An observation has those of the last change whom it did not lock.
  if has_row action apply || has_row action release; then rows former; else cat "$S/former" 2> /dev/null; return 0; fi > "$T/former"
  [ -s "$T/former" ] || return 0
  find_privileged
  cat "$S/spared" > "$T/spared" 2> /dev/null
  awk -F '\t' 's == "former" { if (!($1 in unfit) && ($4 == "privileged" || !($1 in privileged))) print; next }
    s == "spared" { unfit[$1] = 1; next } { privileged[$1] = 1 }' \
    s=privileged "$T/privileged" s=spared "$T/spared" s=former "$T/former" > "$T/due"
}
note_former() {
  awk -F '\t' 's == "ours" { ours[$1] = 1; next } !($1 in ours)' s=ours "$T/ours" s= "$T/former" > "$T/unlocked"
  [ ! -s "$T/unlocked" ] && [ ! -f "$S/former" ] || keep "$S/former" < "$T/unlocked"
}

# Accounts with which people who left, or their processes, may still be here: the site's to mend.
say_open() { # fault|notice
  awk -v kind="$1" -v today="$today" '
    function say(message) { print kind, message }
    s == "ours" { ours[$1] = 1; if ($2 in name) next; name[$2] = $1; state[$2] = $3; next }
    s == "former" { uid[$1] = $2; gid[$1] = $3; next }
    s == "shadow" { shut[$1] = $8 != "" && $8 <= today; next }
    s == "names" { there[$1] = $3; next }
    $3 in name && $1 != name[$3] && there[name[$3]] == $3 {
      if (state[$3] == "locked") say("processes of " name[$3] ", who left, are not ended, as " $1 " has the uid " $3 " too")
      else say("the uid " $3 " of " name[$3] " is also that of " $1 ": when " name[$3] " leaves, their processes go on")
    }
    $1 in uid && !($1 in ours) && !shut[$1] && $7 !~ /\/(nologin|false)$/ {
      say($1 ", who left, has an open account here" ($3 == uid[$1] && $4 == gid[$1] ? "" : ", with the uid " $3 " and the gid " $4 ",") " that is not ours (chage -E 1 " $1 ")")
    }' OFS='\t' FS='\t' s=ours "$T/ours" s=former "$T/former" FS=: s=shadow /etc/shadow s=names /etc/passwd s= /etc/passwd
}

# Before anything is changed. Fields of $S/kept: name, uid, gid, shell, expiry (none: it has no line in shadow); the shell that was wanted at the adoption, for the account's
# own stays until another is wanted (then it is -); and the shell that we set.
keep_fields() {
  awk '
    function found(name, wanted) {
      kept[name] = 1; uid[name] = $3; gid[name] = $9; shell[name] = login_shell[name]; asked[name] = wanted
      expiry[name] = name in expires ? expires[name] : "none"
    }
    s == "kept" { kept[$1] = 1; uid[$1] = $2; gid[$1] = $3; shell[$1] = $4; expiry[$1] = $5; asked[$1] = $6; ours[$1] = $7; next }
    s == "taken" { taken[$1] = 1; next }
    s == "passwd" { login_shell[$1] = $7; next }
    s == "shadow" { expires[$1] = $8; next }
    $1 == "adopt" { found($2, $5); next }
    $1 ~ /^lock/ && $2 in taken && !($2 in kept) { found($2, "-"); next }
    !($2 in kept) { next }
    # Made anew, it is like any other of ours.
    $1 == "mend" { delete kept[$2] }
    $1 == "lock" { expiry[$2] = $2 in expires ? expires[$2] : "none" }
    $1 ~ /^(alter|change|same)$/ && $6 != "" { asked[$2] = "-"; ours[$2] = $6 }
    END { for (name in kept) print name, uid[name], gid[name], shell[name], expiry[name], asked[name], ours[name] }' OFS='\t' \
    FS='\t' s=kept "$T/kept" s=taken "$T/taken" FS=: s=passwd /etc/passwd s=shadow /etc/shadow FS='\t' s=todo "$T/todo" | sort > "$T/keeping"
  cmp -s "$T/keeping" "$T/kept" || keep "$S/kept" < "$T/keeping"
  mv -f "$T/keeping" "$T/kept"
  cat "$S/spared" > "$T/spared" 2> /dev/null
  awk -F '\t' 's == "spared" { unfit[$1] = 1; next } $1 == "adopt" { delete unfit[$2] } $1 == "conflict" && $7 != "" { unfit[$2] = 1 }
    END { for (name in unfit) print name }' s=spared "$T/spared" s=todo "$T/todo" | sort > "$T/sparing"
  cmp -s "$T/sparing" "$T/spared" || keep "$S/spared" < "$T/sparing"
}

notice_passwords() {
  awk -F '[:\t]' 's == "kept" { kept[$1] = 1; next }
    $1 in kept && $2 !~ /^[!*]/ && $8 != "1" && ++count <= 5 { print "notice\t" $1 " keeps the password of before, which is a second way in" }' \
    s=kept "$T/kept" s=shadow /etc/shadow
}

# Accounts of rows hand-back get back what we changed in them. Where that fails, nothing may be taken away: they are ours still.
hand_back_adopted() {
  : > "$T/handed"
  : > "$T/edits"
  cat "$S/kept" > "$T/kept" 2> /dev/null
  [ -s "$T/kept" ] || return 0
  hand_back
  edit_account_files 2> "$T/out" || { problem account "the accounts cannot be handed back: $(first_output)"; return 1; }
}
# They are the site's again, as they are.
leave_adopted() {
  awk -F '\t' 's == "kept" { kept[$1] = 1; next } !($1 in kept)' s=kept "$T/kept" s=ours "$S/accounts" | keep "$S/accounts"
}

# What somebody changed since stays, and so does the lock of those who left.
hand_back() {
  rows hand-back > "$T/back"
  awk -v edits="$T/edits" -v handed="$T/handed" '
    function say(message) { print "notice", message }
    s == "back" { back[$1] = 1; next }
    s == "passwd" { there[$1] = $3; login_shell[$1] = $7; next }
    s == "shadow" { expires[$1] = $8; next }
    !($1 in expires) { expires[$1] = "none" }
    there[$1] != $2 { say("the account " $1 " is not here any more"); next }
    !($1 in back) { if (expires[$1] == "1") say($1 " stays locked (chage -E -1 " $1 ")"); next }
    {
      print $1 > handed
      set = ""
      if (login_shell[$1] != $4) {
        if (login_shell[$1] == $7) set = $4 == "" ? "-" : $4
        else say("the shell of " $1 " was changed by hand, and stays " login_shell[$1])
      }
      if (expires[$1] != "1" && expires[$1] != $5) say("the expiry of " $1 " was changed by hand, and stays")
      if (set != "" || expires[$1] == "1") print "open", $1, $2, set, $3 > edits
    }' OFS='\t' FS='\t' s=back "$T/back" FS=: s=passwd /etc/passwd s=shadow /etc/shadow FS='\t' s=kept "$T/kept"
}
`;
