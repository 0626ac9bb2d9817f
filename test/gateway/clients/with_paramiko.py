"""What scripts do with paramiko: `with_paramiko.py HOST PORT USER KEY KNOWN_HOSTS FOLDER ECHO_PORT [OTHER_KEY…]` prints one JSON line."""
import hashlib, json, os, sys, threading, time
import paramiko

host, port, user, key, known, folder, echo, *others = sys.argv[1:]
client = paramiko.SSHClient()
client.load_host_keys(known)
client.set_missing_host_key_policy(paramiko.RejectPolicy())
# What is no Ed25519 key comes first: it is to be refused, and the right one tried.
client.connect(host, int(port), user, key_filename=[*others, key], allow_agent=False, look_for_keys=False)
transport = client.get_transport()
transport.set_keepalive(1)
said = {"ciphers": transport.remote_cipher}


def run(command, data=b""):
    stdin, stdout, stderr = client.exec_command(command)
    stdin.write(data)
    stdin.channel.shutdown_write()
    return [stdout.read().decode(), stderr.read().decode(), stdout.channel.recv_exit_status()]


said["exec"] = run("wc -c; echo late >&2; exit 3", b"twelve bytes")

# Twenty commands at once on one connection.
answers = [None] * 20


def each(i):
    answers[i] = run("cat; exit %d" % i, b"%d" % i)


threads = [threading.Thread(target=each, args=(i,)) for i in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
said["at once"] = answers

# New keys in the midst of data, asked for by the client alone: where both begin at once, two threads of paramiko each send a KEXINIT.
data = os.urandom(4_000_000)
piece = data[:300_000]
stdin, stdout, _ = client.exec_command("cat")


def feed():
    stdin.write(piece[:150_000])
    stdin.write(piece[150_000:])
    stdin.channel.shutdown_write()


feeder = threading.Thread(target=feed)
feeder.start()
transport.renegotiate_keys()
said["piped"] = hashlib.sha256(stdout.read()).hexdigest() == hashlib.sha256(piece).hexdigest()
feeder.join()

sftp = client.open_sftp()
with sftp.open(folder + "/by paramiko", "wb") as file:
    file.set_pipelined(True)
    file.write(data)
with sftp.open(folder + "/by paramiko", "rb") as file:
    file.prefetch()
    said["sftp"] = file.read() == data
sftp.remove(folder + "/by paramiko")
sftp.close()

forwarded = transport.open_channel("direct-tcpip", ("localhost", int(echo)), ("127.0.0.1", 0))
forwarded.sendall(b"through")
forwarded.shutdown_write()
said["forwarded"] = forwarded.makefile().read().decode()
try:
    transport.open_channel("direct-tcpip", ("10.0.0.5", 22), ("127.0.0.1", 0))
except paramiko.ChannelException as refusal:
    said["refused"] = refusal.code

shell = client.invoke_shell(width=91, height=23)
shell.resize_pty(width=100, height=40)
shell.sendall("echo size=$(stty size)=; exit 5\n")
text = b""
while not shell.closed and (part := shell.recv(4096)):
    text += part
said["shell"] = ["size=40 100=" in text.decode(), shell.recv_exit_status()]

time.sleep(1.2)
said["alive after keepalives"] = run("echo yes")[0]
client.close()
print(json.dumps(said))
