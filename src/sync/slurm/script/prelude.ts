/**
 * The start of every script. Scripts are POSIX sh. They read the wanted state as lines of data, never as code, and write a
 * report of lines; fields of both are separated by tabs. /var/lib/andromeda-slurm/<cluster>, which only root can read,
 * records what is ours on a host.
 */
export const prelude = String.raw`
umask 077
LC_ALL=C; export LC_ALL
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin:/opt/slurm/sbin:/opt/slurm/bin"; export PATH
tab=$(printf '\t')
emit() { local IFS="$tab"; printf '%s\n' "$*"; }
one_line() { tr '\n\t' '  ' | cut -c1-700; }
problem() { failed="$failed $1 "; emit problem "$1" "$(printf '%s' "$2" | one_line)"; }
# From a part of a pipeline, too, it is the end of all of it.
abort() { printf '%s\n' "$1" >&2; kill -TERM $$; exit 1; }
rows() { [ ! -f "$T/row.$1" ] || cat "$T/row.$1"; }
# Hosts are asked often, and what a script costs them is the processes that it starts: these start none.
first() { line=''; [ ! -f "$1" ] || IFS= read -r line < "$1"; } # FILE: its first line, in $line
row() { first "$T/row.$1"; }
has_rows() { [ -s "$T/row.$1" ]; }
has_row() {
  local one
  has_rows "$1" || return 1
  while IFS= read -r one; do [ "$one" != "$2" ] || return 0; done < "$T/row.$1"
  return 1
}
unpack() { base64 -d; }
boot_id() { cat /proc/sys/kernel/random/boot_id 2>/dev/null; }

# Replaces a file of ours whole, from standard input.
keep() { cat > "$1.new" && mv -f "$1.new" "$1" || abort "$1 cannot be written"; }
# The same with one line, where it is another.
keep_line() { first "$1"; [ "$line" = "$2" ] || printf '%s\n' "$2" | keep "$1"; }

# Where a file is written before it takes the place of another. Hosts may share the directory and write the same at the same
# time, so that the name is this host's alone; it is hidden, since Slurm runs whatever it finds there.
beside() { printf '%s/.%s.andromeda.%s' "$(dirname "$1")" "$(basename "$1")" "$(cat "$S/token")"; }

is_owed() { [ -s "$S/owed" ] && grep -qxF "$1" "$S/owed"; }
owe() { is_owed "$1" || printf '%s\n' "$1" >> "$S/owed" || abort "$S/owed cannot be written"; }
clear_owed() { [ ! -f "$S/owed" ] || { grep -vxF "$1" "$S/owed" | keep "$S/owed"; }; }

# Runs a command of the lab file or a script; what it starts holds neither our lock nor our output.
run_command() { timeout 120 sh -c "$1" < /dev/null > "$T/out" 2>&1 9>&-; }
first_output() { head -c 250 "$T/out" | one_line; }

# Lines of Slurm's files, as its parser reads them (parse_config.c, slurm.conf(5)): what is behind # goes first; a backslash that
# is the last then, but for blanks and a carriage return, joins the next line; further ones are taken out.
slurm_lines='
  function read_line(text,  i, char, slashes) {
    if (index(text, "#")) for (i = 1; i <= length(text); i++) {
      char = substr(text, i, 1)
      if (char == "#" && slashes % 2 == 0) { text = substr(text, 1, i - 1); break }
      slashes = char == "\\" ? slashes + 1 : 0
    }
    joins = 0
    if (match(text, /\\+[ \t\r\f\v]*$/)) {
      slashes = substr(text, RSTART); gsub(/[^\\]/, "", slashes)
      joins = length(slashes) % 2
      if (joins) text = substr(text, 1, RSTART + length(slashes) - 2)
    }
    return text
  }
  # In small letters; "" where there is nothing, and ? where it is no setting.
  function key_of(line) {
    if (line ~ /^[ \t\r\f\v]*$/) return ""
    line = tolower(line)
    if (line ~ /^include[ \t]/) return "include"
    if (!match(line, /^[ \t]*[a-z0-9_.]+[ \t]*[-*+\/]?=/)) return "?"
    line = substr(line, 1, RLENGTH); gsub(/[^a-z0-9_.]/, "", line)
    return line
  }
  function value_of(line) {
    gsub(/\\\\/, "\001", line); gsub(/\\/, "", line); gsub(/\001/, "\\", line)
    is_include = key_of(line) == "include"
    if (is_include) sub(/^[^ \t]*[ \t]*/, "", line); else sub(/^[^=]*=[ \t\r\f\v]*/, "", line)
    if (line ~ /^"/ && !is_include) { line = substr(line, 2); sub(/".*/, "", line) } else sub(/[ \t\r\f\v].*/, "", line)
    return line
  }'

# conf_value KEY [all]: a setting of slurm.conf and of what it includes, read from the files, for Slurm may not answer. The last one
# counts; all: each of them.
conf_value() {
  [ ! -f "$conf" ] || awk -v key="$1" -v all="$2" -v file="$conf" -v dir="$etc" "$slurm_lines"'
    function read_file(path,  raw, line) {
      while ((getline raw < path) > 0) {
        line = line read_line(raw)
        if (joins) continue
        take(line); line = ""
      }
      # The last one, where it went on with none to come.
      take(line)
      close(path)
    }
    function take(line,  name, found) {
      found = key_of(line)
      if (found == "clustername") cluster = value_of(line)
      if (found == "include" && depth < 10) {
        name = value_of(line); gsub(/%c/, cluster, name)
        depth++; read_file(name ~ /^\// ? name : dir "/" name); depth--
      } else if (found == tolower(key)) { value = value_of(line); if (all) print value }
    }
    BEGIN { read_file(file); if (!all) print value }'
}

# Only when all of it has come does anything happen: a connection that breaks must not look like an empty list.
begin() {
  [ -d /run/andromeda-slurm ] || mkdir -p -m 711 /run/andromeda-slurm; T=$(mktemp -d /run/andromeda-slurm/XXXXXX) || abort 'no temporary directory can be made'
  trap 'unlock_account_files; rm -rf "$T"' EXIT
  trap 'exit 1' HUP INT TERM
  cat > "$T/data" || abort 'no temporary file can be written'
  awk '{ last = $0; file = prefix $1; sub(/^[^\t]*\t/, ""); print > file } END { exit last != "end" }' FS='\t' prefix="$T/row." "$T/data" ||
    abort 'the script came only in part'
  failed=''
  first /proc/sys/kernel/hostname; host=$line
  today=$(($(date +%s) / 86400))
  row id; id=$line
  S=/var/lib/andromeda-slurm/$id
  # Our notes of the people here.
  people=$S/accounts
  ! from_directory || people=$S/directory
  # In the field of an account's comment that only root can change: by it a host that lost its notes knows its own.
  comment="Andromeda,,,,$id"
  row config; conf=$line
  SLURM_CONF=$conf; export SLURM_CONF
  etc=$(dirname "$conf")
  ours=$etc/andromeda
}

# One at a time on a host, whatever it is called and whoever sent it.
lock_host() {
  [ -d "$S" ] || mkdir -p -m 700 "$S" || abort "$S cannot be made"
  command -v flock > /dev/null || abort 'flock (util-linux) is missing'
  exec 9> /var/lib/andromeda-slurm/lock || abort '/var/lib/andromeda-slurm/lock cannot be written'
  flock -w 60 9 || abort 'another change on this host does not end'
  # Of scripts that were killed.
  find /run/andromeda-slurm -mindepth 1 -maxdepth 1 -mmin +60 -exec rm -rf {} +
  [ "$people" = "$S/directory" ] || rm -f "$S/directory"
  { : >> "$S/accounts"; : >> "$people"; : >> "$S/files"; } || abort "$S cannot be written"
  [ -s "$S/token" ] || keep "$S/token" < /proc/sys/kernel/random/uuid
  check_fence
}

# Of several servers, one looks after a cluster, with a number that is higher than what the others had. What comes late of one
# that does not any more, or was sent before something newer, changes nothing.
check_fence() {
  local fence last
  has_rows fence || return 0
  row fence; fence=$line
  first "$S/fence"; last=$line
  [ -n "$last" ] || last=0
  [ "$fence" -ge "$last" ] || abort 'another server looks after this host by now; nothing was changed'
  if [ "$fence" = "$last" ] && ! has_row action release && [ -s "$S/current" ]; then
    [ "$(rows version | cut -f 1)" -ge "$(cut -f 1 "$S/current")" ] || abort 'this host has a newer list already; nothing was changed'
  fi
  keep_line "$S/fence" "$fence"
}
`;
