/**
 * The script of a survey: what accounts, keys, homes, groups and Slurm's accounting are like on a host that we may never have
 * changed. It only reads. Text of people and of a site goes into the last field of a line, or has its tabs replaced.
 */
export const survey = String.raw`
unlock_account_files() { :; }

# Whether some of the time that is left for asking once for each person is still there.
has_time() { [ "$(date +%s)" -lt "$until" ]; }
limited() { timeout -k 2 "$@" < /dev/null 2> /dev/null; }

# Of the sources that nsswitch.conf names those that are directories, with what sssd asks.
find_directories() {
  local source
  for source in $(sed -n 's/#.*//; s/^passwd:\(.*\)/\1/p' /etc/nsswitch.conf 2> /dev/null); do
    case $source in
      files | db | systemd | altfiles | extrausers | mymachines | myhostname | \[* | *\]) ;;
      compat) ! grep -q '^+' /etc/passwd || echo nis ;;
      sss) echo "sssd $(cat /etc/sssd/sssd.conf /etc/sssd/conf.d/*.conf 2> /dev/null | sed -n 's/^[ \t]*id_provider[ \t]*=[ \t]*//p' | sort -u | tr '\n' ' ')" ;;
      *) echo "$source" ;;
    esac
  done | sed 's/ *$//' > "$T/directories"
  sed "s/^/directory$tab/" "$T/directories"
}

# Accounts as lines of passwd, whose text cannot pass for another field. "locked" is a password that was put out of use.
account_lines='
  function state(field) { return field == "" ? "empty" : field ~ /^!+[^!*]/ ? "locked" : field ~ /^[!*]/ ? "none" : "set" }
  s == "shadow" { password[$1] = state($2); expired[$1] = $8 != "" && $8 + 0 <= today; next }
  s == "files" { known[$1] = 1; next }
  /^[+-]/ || NF < 7 || $3 !~ /^[0-9]+$/ || $4 !~ /^[0-9]+$/ || $1 == "" || length($1) > 256 || $1 in known { next }
  { gsub(/[\t\r]/, " "); known[$1] = 1
    print "account", source, $1, $3, $4, substr($5, 1, 200), substr($6, 1, 1000), substr($7, 1, 300), ($1 in password ? password[$1] : source == "files" ? state($2) : "unknown"), expired[$1] + 0 }'

survey_accounts() {
  awk -F: "$account_lines" OFS='\t' today=$today source=files s=shadow /etc/shadow s= /etc/passwd > "$T/accounts"
  awk -F: '/^[+-]/ || NF < 4 || $3 !~ /^[0-9]+$/ { next } { gsub(/[\t\r]/, " "); print "group", $1, $3, substr($4, 1, 20000) }' OFS='\t' /etc/group > "$T/groups"
  # Only where there is a directory to be asked for them.
  : > "$T/home-names"
  [ ! -s "$T/directories" ] || limited 10 ls -f /home | grep -v "$tab" > "$T/home-names"
  sed "s/^/home-name$tab/" "$T/home-names"
  [ ! -s "$T/directories" ] || survey_directory
  cat "$T/accounts" "$T/groups"
}

# A directory cannot be listed, as a rule: it is asked for the names that are known.
survey_directory() {
  { rows name; cat "$T/names" 2> /dev/null; cut -f 4 "$T/groups" | tr ',' '\n'; cat "$T/home-names"; } |
    awk 's == "files" { known[$3] = 1; next } /^[A-Za-z0-9_.@\\][A-Za-z0-9_.@\\+-]*$/ && !/^[.]+$/ && length($0) <= 256 && !($0 in known) && !seen[$0]++' FS='\t' s=files "$T/accounts" s= - | head -n 5000 > "$T/asked"
  # The line is the operand of xargs as it is; nothing of it is code.
  { limited 20 getent passwd; tr '\n' '\0' < "$T/asked" | timeout -k 2 60 xargs -0 -r getent passwd -- 2> /dev/null; } > "$T/found"
  awk -F: "$account_lines" OFS='\t' today=$today source=directory s=files /etc/passwd s= "$T/found" > "$T/directory"
  cat "$T/directory" >> "$T/accounts"
  cut -f 3 "$T/directory" > "$T/members"
  while IFS= read -r name; do
    has_time || { emit notice other 'not everybody of the directory was asked for groups'; break; }
    for gid in $(limited 5 id -G "$name"); do emit "$gid" "$name"; done
  done < "$T/members" > "$T/memberships"
  ! has_row role login || ! command -v sssctl > /dev/null || ask_pam "$T/members" 30 | sed "s/^/check$tab/"
  cut -f 1 "$T/memberships" | sort -u | xargs -r timeout 20 getent group 2> /dev/null | tr ':' '\t' |
    awk -F '\t' 's == "members" { members[$1] = members[$1] "," $2; next } s == "local" { known[$3]; next } !($3 in known) { print "group", $1, $3, members[$3] }' \
      OFS='\t' s=members "$T/memberships" s=local "$T/groups" s= -
}

# Those who may be people and are not ours yet, as name, number, group and home.
list_people() {
  local least
  least=$(awk '$1 == "UID_MIN" && $2 ~ /^[0-9]+$/ { print $2 }' /etc/login.defs 2> /dev/null)
  [ -n "$least" ] || least=1000
  cat "$people" > "$T/ours" 2> /dev/null
  awk -F '\t' '
    s == "ours" { ours[$1]; next }
    $3 in ours || $6 ~ /^Andromeda,,,,/ { next }
    $2 == "directory" || ($4 == 0 && $3 != "root") || ($4 >= least && $4 != 65534) || ($4 >= 500 && $7 ~ /^\/home\// && $8 !~ /(nologin|false)$/) {
      print $3, $4, $5, $7 }' OFS='\t' least=$least s=ours "$T/ours" s= "$T/accounts" > "$T/people"
  sed "s/^\([^$tab]*\).*/candidate$tab\1/" "$T/people"
  [ ! -s "$T/ours" ] || emit notice other "$(awk 'END { print NR }' "$T/ours") accounts are Andromeda's already, and not in this survey"
}

survey_homes() {
  local name home
  cut -f 4 "$T/people" | grep '^/' | sort -u > "$T/homes"
  tr '\n' '\0' < "$T/homes" | timeout -k 2 20 xargs -0 -r stat -L -c "home$tab%u$tab%a$tab%n" -- 2> /dev/null
  case $? in 124 | 137) emit notice other 'homes do not answer'; return 0 ;; esac
  while IFS= read -r home; do
    [ ! -e "$home" ] || { [ -r "$home" ] && [ -x "$home" ]; } || emit closed "$home"
  done < "$T/homes"
  # A home under another path counts as /home/NAME where that leads to it.
  while IFS="$tab" read -r name _ _ home; do
    [ "$home" = "/home/$name" ] || [ ! "$home" -ef "/home/$name" ] || emit linked "$name"
  done < "$T/people"
}

# Where sshd looks for the keys of each person, as name, number, group, home, program and paths. Only a Match makes a difference between people.
key_files() {
  local name rest command
  sshd=$(command -v sshd)
  config=$(tr '\0' ' ' < "/proc/$(pgrep -o -x sshd)/cmdline" 2> /dev/null | sed -n 's/.* -f *\([^ ]*\).*/\1/p')
  [ -n "$config" ] || config=/etc/ssh/sshd_config
  sshd_settings root
  [ ! -s "$T/sshd" ] || ! cat "$config" /etc/ssh/sshd_config.d/*.conf 2> /dev/null | grep -qi '^[[:space:]]*match[[:space:]]' || matches=yes
  while IFS="$tab" read -r name rest; do
    has_time || return 0
    [ -z "$matches" ] || sshd_settings "$name"
    command=$(sed -n 's/^authorizedkeyscommand //p' "$T/sshd")
    [ -n "$command" ] || command=none
    [ ! -s "$T/sshd" ] || emit "$name" "$rest" "$command" "$(sed -n 's/^authorizedkeysfile //p' "$T/sshd")"
  done < "$T/people"
}
sshd_settings() { limited 5 "$sshd" -T -f "$config" -C "user=$1,host=localhost,addr=127.0.0.1" > "$T/sshd"; }

expand_key_files='
  function expand(path,  out, at, mark) {
    while ((at = index(path, "%")) > 0) {
      mark = substr(path, at + 1, 1)
      out = out substr(path, 1, at - 1) (mark == "h" ? $4 : mark == "u" ? $1 : mark == "U" ? $2 : "%")
      path = substr(path, at + 2)
    }
    out = out path
    return out ~ /^\// ? out : $4 "/" out
  }
  { line = $1 OFS $2 OFS $3 OFS $5; count = split($6, file, " "); for (i = 1; i <= count; i++) line = line OFS expand(file[i]); print line }'

# The keys of each person, read with the rights of that person, as sshd reads them: root may be nobody on a mount, and a link in a
# home leads where its owner may read. Other processes of the person can take the descriptors of that reader: it has none of a file,
# and a pipe for itself alone, which is read for so long and no longer.
survey_keys() {
  local matches='' name uid gid command own
  command -v sshd > /dev/null || return 0
  command -v setpriv > /dev/null || { emit notice other 'keys are not read: setpriv (util-linux) is missing'; return 0; }
  key_files > "$T/key-files"
  [ -s "$T/key-files" ] || { emit notice other 'keys are not read: sshd -T does not say where they are'; return 0; }
  cut -f 5 "$T/key-files" | grep -vx none | sort -u | sed "s/^/notice$tab""other$tab""sshd asks for keys: /"
  awk -F '\t' "$expand_key_files" OFS='\t' "$T/key-files" > "$T/expanded"
  while IFS= read -r line; do
    set -f; IFS=$tab; set -- $line; unset IFS; set +f
    name=$1 uid=$2 gid=$3 command=$4; shift 4
    has_time || { emit notice other "not everybody's keys were read: there was no time after $name"; break; }
    limited 5 setpriv --reuid="$uid" --regid="$gid" --clear-groups sh -c "$print_files" keys "$@" | timeout -k 2 7 head -c 262144 > "$T/keys"
    own=$(tail -n 1 "$T/keys")
    case $command in
      none) ;;
      */sss_ssh_authorizedkeys*) { echo '# file sssd'; limited 5 sss_ssh_authorizedkeys "$name"; } >> "$T/keys" || own='' ;;
      *) own='' ;;
    esac
    name=$name own=$own awk "$key_lines" OFS='\t' "$T/keys"
  done < "$T/expanded"
}
print_files='for file; do [ ! -f "$file" ] || { echo "# file $file"; head -c 65536 "$file" || exit; echo; }; done; echo "# read"'
# The last line of the reader says that all of it came.
key_lines='
  BEGIN { name = ENVIRON["name"] }
  /^# file / { file = substr($0, 8); gsub(/\t/, " ", file); size = 0; next }
  { size += length($0) + 1 }
  size > 65536 { cut = 1 }
  /^[ \t]*(#|$)/ { next }
  length($0) > 8000 || ++count > 100 { cut = 1; next }
  { gsub(/[\t\r]/, " "); print "key", name, file, $0 }
  END { if (cut) print "notice", "other", "not all lines of keys of " name " were read: 100 of 8000 characters, and 64 KiB of a file, are the most"; else if (ENVIRON["own"] == "# read") print "read", name }'

# Who was let in by sshd itself in the last 30 days, with which key and from where; "last" knows no keys.
survey_logins() {
  limited 20 journalctl -q -o short-iso --since '30 days ago' -t sshd -t sshd-session -g '^Accepted ' > "$T/logins"
  [ -s "$T/logins" ] || find /var/log -maxdepth 1 \( -name 'auth.log*' -o -name 'secure*' \) -mtime -30 -exec zcat -f {} + 2> /dev/null | grep 'sshd.*: Accepted ' > "$T/logins"
  if [ -s "$T/logins" ]; then
    awk 'match($0, / Accepted [a-z\/-]+ for /) {
      split(substr($0, RSTART + RLENGTH), part, " ")
      what = part[1] "\t" part[3] "\t" (part[7] ~ /^[A-Z]/ ? part[8] : "")
      if (!(what in count)) order[++lines] = what
      count[what]++; last[what] = $1 ~ /^[0-9][0-9][0-9][0-9]-/ ? $1 : $1 " " $2 " " $3
    } END { for (i = 1; i <= lines && i <= 5000; i++) print "login", order[i], count[order[i]], last[order[i]] }' OFS='\t' "$T/logins"
  else
    limited 20 last -w -i -F -s -30days | awk 'NF > 6 && $2 ~ /^pts/ && !seen[$1, $3]++ { print "login", $1, $3, "", 1, $5 " " $6 " " $7 " " $8 }' OFS='\t'
  fi
}

# Who may become root by sudo: names, groups as %name, numbers as #number.
survey_rights() {
  cat /etc/sudoers /etc/sudoers.d/* /usr/local/etc/sudoers.d/* 2> /dev/null | awk '
    /\\$/ { held = held substr($0, 1, length($0) - 1); next } { $0 = held $0; held = "" }
    { sub(/#([^0-9].*)?$/, "") } /^[ \t]*(Defaults|Cmnd_Alias|Host_Alias|Runas_Alias|@include)/ || !/=/ { next }
    { who = $0; if (sub(/^[ \t]*User_Alias[^=]*=/, "", who)) sub(/:.*/, "", who); else sub(/=.*/, "", who)
      count = split(who, name, /[, \t]+/); for (i = 1; i <= count; i++) if (name[i] != "" && name[i] !~ /^(ALL|root|!.*)$/ && !seen[name[i]]++) print "sudoer", name[i] }' OFS='\t'
  find /etc/systemd/system /run/systemd/system /usr/lib/systemd/system /lib/systemd/system -name '*.service' -exec sed -n 's/^User[ \t]*=[ \t]*//p' {} + 2> /dev/null | sort -u | grep -v '%' | sed "s/^/service$tab/"
}

# What else writes the account files of this host.
survey_writers() {
  cat /proc/[0-9]*/comm 2> /dev/null | sort -u > "$T/running"
  while read -r program name; do ! grep -qx "$program" "$T/running" || emit notice writer "$name"; done << END
ypbind NIS
wwclient Warewulf
puppet Puppet
chef-client Chef
salt-minion Salt
END
  while read -r path name; do [ ! -e "$path" ] || emit notice writer "$name"; done << END
/warewulf Warewulf
/opt/xcat xCAT
/xcatpost xCAT
/etc/puppetlabs/puppet/puppet.conf Puppet
/etc/chef/client.rb Chef
END
  grep -rsE '(cp|scp|rsync|install|mv|pdcp|clush|pdsh|curl|wget|ansible|tar|git)[^#]*(passwd|/etc/group|shadow|syncfiles)' /etc/crontab /etc/cron.d /etc/cron.hourly /etc/cron.daily /var/spool/cron 2> /dev/null |
    grep -vE ':[[:space:]]*#|cron.daily/passwd:' | head -n 5 | tr '\t' ' ' | cut -c1-300 | sed "s/^/writer$tab/; s/^/notice$tab/"
  emit sum "$(sha256sum < /etc/passwd | cut -c1-64)"
  awk '$3 ~ /^nfs/ && $4 ~ /(^|,)sec=krb5/ { print "notice\tfirst\t" $2 " needs Kerberos (sec=krb5), which is not supported" }' /proc/mounts
}

survey_slurm() {
  : > "$T/queue"; : > "$T/usage"; : > "$T/users"
  if limited 15 scontrol -o show nodes > "$T/nodes"; then
    sed -n "s/^NodeName=\([^ ]*\).*/node$tab\1/p" "$T/nodes"
    limited 10 scontrol show config | awk '$1 == "SlurmUser" { sub(/\(.*/, "", $3); print "service", $3 }
      $1 == "GroupUpdateTime" { print "notice", "other", "Slurm reads groups again after " $3 " s (GroupUpdateTime)" }' OFS='\t'
    limited 20 squeue -h -a -t running,suspended,pending -o '%u|%T' > "$T/queue"
  else emit notice other 'slurmctld does not answer, so that nodes and jobs are not known'; fi
  if limited 20 sacctmgr -nP show user withassoc withcoord format=user,account,defaultaccount,adminlevel,coordinators > "$T/users"; then
    limited 20 sreport -nP -t hours -T cpu,gres/gpu cluster UserUtilizationByAccount "start=$(date -d '365 days ago' +%F)" format=login,tresname,used > "$T/usage"
  else emit notice other "Slurm's accounting does not answer"; fi
  # Accounting has all names in small letters, unless a site says otherwise.
  awk -F '|' '
    $1 == "root" || $1 == "" { next }
    { name = tolower($1); seen[name] }
    s == "usage" { if ($2 == "cpu") cpu[name] += $3; else gpu[name] += $3; next }
    s == "queue" { if ($2 == "PENDING") pending[name]++; else running[name]++; next }
    { accounts[name] = accounts[name] "," $2; usual[name] = $3; level[name] = $4; own[name] = $5 }
    END { for (name in seen) print "slurm", name, accounts[name], usual[name], level[name], own[name], cpu[name] + 0, gpu[name] + 0, running[name] + 0, pending[name] + 0 }' \
    OFS='\t' s=usage "$T/usage" s=queue "$T/queue" s=users "$T/users" > "$T/slurm"
  cut -f 2 "$T/slurm" > "$T/names"
  cat "$T/slurm"
}

survey() {
  begin
  until=$(($(date +%s) + 45))
  find_directories
  ! has_row role controller || survey_slurm
  survey_accounts
  list_people
  survey_rights
  survey_writers
  ! has_row role login || { survey_homes; survey_keys; survey_logins; }
  emit end
}
`;
