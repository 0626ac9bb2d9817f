/** Upgrades on a booted host: the lines of the page, and what begins a script that runs them (test/support/systemd.ts). */
import { readPage } from '../docs/pages.ts';
import { nextVersion } from './next-version.ts';

const { commands } = readPage('operations.md', 'Upgrade');
const find = (end: string) => commands.find((line) => line.endsWith(end)) ?? '';
export const goUp = find(' service upgrade');
export const goBack = find(' service rollback');
const others = commands.filter((line) => line !== goUp && line !== goBack);

/**
 * Has the present version installed and started, and the files of the next one here. `state` says the program in place and the one that runs, of
 * which version the three units are, whether it serves, and what is in the database. `order` has the next version's step of the schema
 * done, left out (`none`), fail or hang, and a start end with what a shell script says.
 */
export const begin = `
mount -t tmpfs tmpfs /usr/local/bin; cp /program/andromeda /usr/local/bin/andromeda
mkdir /opt/release; cd /opt/release
install -m 0644 /program/next andromeda-${nextVersion}-linux-x64; sha256sum andromeda-* > SHA256SUMS
andromeda service install > /campaign/install || exit
mkdir -p /run/systemd/system/andromeda.service.d
printf '%s\\n' '[Service]' RestartSec=1 'ExecStartPost=/bin/sh /opt/release/late' > /run/systemd/system/andromeda.service.d/test.conf
systemctl daemon-reload
units="/etc/systemd/system/andromeda.service /etc/systemd/system/andromeda-gateway.socket /etc/systemd/system/andromeda-gateway@.service"
order() { echo $1 > /etc/andromeda/step; echo "$2" > late; }
is_next="andromeda version | grep -q ${nextVersion}"
bootstrap() { echo "echo 'correct horse battery' | andromeda admin bootstrap --email $1@x.example --config $config"; }
add() { HOME=/tmp setpriv --reuid=andromeda --regid=andromeda --init-groups sh -c "$(bootstrap $1)" > /dev/null; }
cat > database.py << END
import sqlite3
database = sqlite3.connect('file:/var/lib/andromeda/andromeda.db?mode=ro', uri=True)
print(*[name.split('@')[0] for name, in database.execute("""select primary_email from users where primary_email like '%@x.example'
  union select name from sqlite_master where name = 'next_version' order by 1""")])
END
version_of() { case $(stat -Lc %s $1 2> /dev/null) in $(stat -c %s /program/andromeda)) echo old;; $(stat -c %s /program/next)) echo new;; *) echo none; esac; }
of_units() {
  [ $(ls $units 2> /dev/null | wc -l) = 3 ] || { echo missing; return; }
  case $(cat $units | grep -c 'the next one') in 0) echo old;; 3) echo new;; *) echo mixed; esac
}
state() { echo "$(version_of /usr/local/bin/andromeda) $(version_of /proc/$(show MainPID)/exe) $(of_units) $(ready): $(python3 database.py)"; }
left() { (cd /usr/local/bin; ls | grep -v '^andromeda$' | tr '\\n' ' '); }
order; systemctl start andromeda; until_ '[ $(ready) = 200 ]'; add ada
${others.map((line) => `${line} > /dev/null || echo failed`).join('\n')}
up=$(echo ${goUp.split(' ')[0]})
`;
