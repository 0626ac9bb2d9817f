"""What scripts do with asyncssh: `with_asyncssh.py HOST PORT USER KEY KNOWN_HOSTS FOLDER ECHO_PORT SIGNALS` prints one JSON line."""
import asyncio, json, os, sys, warnings

warnings.simplefilter("ignore")
import asyncssh

host, port, user, key, known, folder, echo, signals = sys.argv[1:]
said = {}


async def main():
    options = dict(port=int(port), username=user, client_keys=[key], known_hosts=known, agent_path=None, config=None)
    # New keys every megabyte, asked for by the client, and signs of life.
    async with asyncssh.connect(host, rekey_bytes=1_000_000, keepalive_interval=1, **options) as connection:
        ran = await connection.run("wc -c; echo late >&2; exit 3", input="twelve bytes")
        said["exec"] = [ran.stdout, ran.stderr, ran.exit_status]
        ran = await connection.run("kill -TERM $$")
        said["exit signal"] = ran.exit_signal[0]

        many = [connection.run(f"cat; exit {i}", input=str(i)) for i in range(20)]
        said["at once"] = [[ran.stdout, ran.stderr, ran.exit_status] for ran in await asyncio.gather(*many)]

        data = os.urandom(6_000_000)
        ran = await connection.run("cat", input=data, encoding=None)
        said["piped"] = ran.stdout == data

        async with connection.start_sftp_client() as sftp:
            async with sftp.open(folder + "/by asyncssh", "wb") as file:
                await file.write(data)
            async with sftp.open(folder + "/by asyncssh", "rb") as file:
                said["sftp"] = await file.read() == data
            await sftp.remove(folder + "/by asyncssh")

        reader, writer = await connection.open_connection("127.0.0.1", int(echo))
        writer.write(b"through")
        writer.write_eof()
        said["forwarded"] = (await reader.read()).decode()
        listener = await connection.forward_local_port("127.0.0.1", 0, "localhost", int(echo))
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.get_port())
        writer.write(b"and a port")
        writer.write_eof()
        said["local port"] = (await reader.read()).decode()
        listener.close()
        try:
            await connection.open_connection("10.0.0.5", 22)
        except asyncssh.ChannelOpenError as refusal:
            said["refused"] = refusal.code

        shell = await connection.create_process(term_type="xterm", term_size=(91, 23))
        shell.change_terminal_size(100, 40)
        shell.stdin.write("echo size=$(stty size)=; exit 5\n")
        text = await shell.stdout.read()
        await shell.wait()
        said["shell"] = ["size=40 100=" in text, shell.exit_status]

        if signals == "signals":
            process = await connection.create_process("echo up; exec sleep 60")
            await process.stdout.readline()
            process.terminate()
            await process.wait()
            said["signalled"] = process.exit_signal[0]

        await asyncio.sleep(1.2)
        said["alive after keepalives"] = (await connection.run("echo yes")).stdout


asyncio.run(main())
print(json.dumps(said))
