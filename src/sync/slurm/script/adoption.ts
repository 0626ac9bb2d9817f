/**
 * Accounts that were on a host before us and are ours by name and numbers. Adopting one changes nothing but our notes: $S/kept has what it
 * had in the fields that we may change later, so that they can be handed back. $S/spared: accounts that were found unfit.
 */
import { privilegedGroups } from '../../../domain/people/person.ts';

export const adoption = String.raw`
# Files that the site copies from another host, where they are written.
is_copy() { has_row accounts copied; }
say_old_copy() {
  has_row action release ||
    problem account "the account files are copied here, and are not current for $(cut -f 2 "$T/edits" | head -n 5 | one_line)"
}

powerful=' ${privilegedGroups.join(' ')} '

# Of the accounts in FILE those that may become root, and by what, in $T/privileged; "unknown" where sudo does not say. Not those that
# the settings allow it.
find_privileged() { # FILE
  { powerful_accounts; ! [ -x "$(command -v sudo)" ] || ask_sudo "$1"; } > "$T/powers"
  rows may-be-root > "$T/may-be-root"
  awk -F '\t' 's == "allowed" { allowed[$1] = 1; next } !($1 in allowed) && !seen[$1]++' \
    s=allowed "$T/may-be-root" s= "$T/powers" > "$T/privileged"
}
powerful_accounts() {
  awk -F '[:,]' '
    s == "passwd" { if ($4 in gid) print $1, "in the group " gid[$4]; next }
    index(powerful, " " $1 " ") { gid[$3] = $1; for (i = 4; i <= NF; i++) print $i, "in the group " $1 }' \
    OFS='\t' powerful="$powerful" s=group /etc/group s=passwd /etc/passwd
}
# Sudo itself knows its rules: by name, number, group, alias or netgroup, from files or a directory. What "nobody" may do, everyone may.
ask_sudo() { # FILE
  echo nobody | cat - "$1" | timeout 10 xargs -r -n 1 -P 4 sh -c '
    said=$(timeout 5 sudo -n -l -U "$0" < /dev/null 2> /dev/null)
    case $said in
      *" is not allowed to run sudo on "*) said= ;;
      *" may run the following commands on "*) said=$(printf %s "$said" | tr "\n\t" "  " | sed "s/.* may run the following commands on [^:]*://") ;;
      *) exit 0 ;;
    esac
    printf "%s\t%s\n" "$0" "$said"' > "$T/rights" 2> /dev/null 9>&-
  awk -F '\t' 's == "rights" { rights[$1] = $2; next }
    !($1 in rights) { print $1, "unknown"; next }
    rights[$1] != "" && rights[$1] != rights["nobody"] { print $1, "a user of sudo" }' OFS='\t' s=rights "$T/rights" s= "$1"
}

# What sudoers names, one a line in $T/sudoers (NAME, #UID, %GROUP, %#GID): of who is not there yet sudo says nothing.
read_sudoers() {
  local depth
  : > "$T/sudoers"
  [ -x "$(command -v sudo)" ] || return 0
  set -- /etc/sudoers
  for depth in 1 2 3 4; do
    cat "$@" > "$T/included" 2> /dev/null
    sed "s/#[^0-9].*//; s/#$//; /^[ $tab]*\(Defaults\|Cmnd_Alias\|Host_Alias\)/d" "$T/included" | tr -cs 'A-Za-z0-9_./%#-' '\n' >> "$T/sudoers"
    # Each * is expanded here.
    set -- $(tr -d '"' < "$T/included" | sed -n "s|^[ $tab]*[#@]includedir[ $tab]*\(.*\)|\1/*|p; s|^[ $tab]*[#@]include[ $tab]\(.*\)|\1|p" | sed 's|^[^/]|/etc/&|')
    [ $# -gt 0 ] || return 0
  done
}

# Of $T/plan: accounts to adopt or to make that are unfit become conflicts.
check_adoptions() {
  grep -q '^adopt\|^new' "$T/plan" || return 0
  awk -F '\t' '$1 == "adopt" && $7 != "copied" { print $2 }' "$T/plan" > "$T/adopting"
  find_privileged "$T/adopting"
  read_sudoers
  awk -F '\t' '$1 == "adopt" && $6 != "/home/" $2 { print $2 ":" $6 }' "$T/plan" | while IFS=: read -r name home; do
    [ "$home" -ef "/home/$name" ] || echo "$name:$home"
  done > "$T/elsewhere"
  awk '
    s == "noted" { noted[$1] = 1; next }
    s == "privileged" { privileged[$1] = $2; next }
    s == "allowed" { allowed[$1] = 1; next }
    s == "sudoers" { rule[$1] = 1; next }
    s == "group" { if (index(powerful, " " $1 " ") || ("%" $1) in rule) root[$3] = $1; next }
    s == "elsewhere" { home[$1] = $2; next }
    $1 !~ /^(adopt|new)$/ || $7 == "copied" { print; next }
    { why = $8 }
    $1 == "new" && !($2 in allowed) {
      if ($9 in root) why = "members of the group " root[$9] " (gid " $9 ") may become root, and " $2 " is not in adoptPrivileged"
      else if ($2 in rule || ("#" $3) in rule || ("%#" $9) in rule || ($3 == $9 && ("%" $2) in rule))
        why = "sudoers names " $2 " or a number of theirs, and " $2 " is not in adoptPrivileged"
      if (why == "") print
      else print "conflict", $2, $3, $4, why, $5, $7, "", $9
      next
    }
    $1 == "new" { print; next }
    $2 in privileged { why = privileged[$2] == "unknown" ? "it is not known whether " $2 " may become root (sudo -l -U " $2 ")" : $2 " is " privileged[$2] ", and not in adoptPrivileged" }
    $2 in home { why = "the home of " $2 " is " home[$2] " (ln -s " home[$2] " /home/" $2 ")" }
    $2 in noted { why = "the account " $2 " (uid " $3 ") is there already and is not ours" }
    why == "" { print; next }
    { print "conflict", $2, $3, $4, why, $5, $7, "", $9 }' OFS='\t' powerful="$powerful" FS='\t' s=noted "$T/noted" s=privileged "$T/privileged" \
    s=allowed "$T/may-be-root" s=sudoers "$T/sudoers" FS=: s=group /etc/group s=elsewhere "$T/elsewhere" FS='\t' s=plan "$T/plan" > "$T/checked"
  mv -f "$T/checked" "$T/plan"
}

# Those who were adopted once and are to have no account, in $T/former; but for accounts that were found unfit here, in $T/due.
find_former() {
  : > "$T/taken"; : > "$T/due"
  # An observation has those of the last change whom it did not lock.
  if has_row action apply || has_row action release; then rows former; elif [ -f "$S/former" ]; then cat "$S/former"; fi > "$T/former"
  has_rows former || return 0
  cat "$S/accounts" > "$T/known" 2> /dev/null
  awk 's == "known" { known[$1] = 1; next } s == "former" { former[$1] = $2; next } former[$1] == $3 && !($1 in known) { print $1 }' \
    FS='\t' s=known "$T/known" s=former "$T/former" FS=: s=passwd /etc/passwd > "$T/returned"
  : > "$T/privileged"
  [ ! -s "$T/returned" ] || find_privileged "$T/returned"
  cat "$S/spared" > "$T/spared" 2> /dev/null
  # Where sudo does not say, they are locked: nothing may keep a person in.
  awk -F '\t' 's == "former" { if (!($1 in unfit) && ($4 == "privileged" || !($1 in privileged))) print; next }
    s == "spared" { unfit[$1] = 1; next } $2 != "unknown" { privileged[$1] = 1 }' \
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
  [ -s "$T/kept" ] || return 0
  awk -F '[:\t]' 's == "kept" { kept[$1] = 1; next }
    $1 in kept && $2 !~ /^[!*]/ && $8 != "1" { names = names (count++ ? ", " : "") $1 }
    END { if (count) print "notice\t" names (count == 1 ? " keeps" : " keep") " the password of before, which is a second way in" }' \
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
