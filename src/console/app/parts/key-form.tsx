/** Registering a public key: pasted, or out of a file; and how to make one. */
import { operation } from '../api.ts';
import { CopyLine } from './page.tsx';
import { useDraft, WriteForm } from './write.tsx';

function isPrivate(text: string): boolean {
  return /PRIVATE KEY|BEGIN/.test(text);
}

/** Whether a text can be anything else, a part of a private key too. */
function isNoPublicKey(text: string): boolean {
  return !/^(sk-)?ssh-/.test(text) || isPrivate(text);
}

function faultOf(text: string): string | undefined {
  if (text.trim() === '') return undefined;
  if (isPrivate(text)) {
    return 'This is a private key, which must never leave your machine. Use the file that ends in .pub.';
  }
  if (/^(ssh-rsa|ssh-dss|ecdsa-|sk-ecdsa-)/.test(text.trim())) {
    return 'Only ed25519 keys are accepted. Create one as shown below.';
  }
  // Whether it takes security keys (sk-), the service says.
  return /^(ssh-ed25519|sk-ssh-ed25519@openssh\.com) [A-Za-z0-9+/]{60,}={0,2}(\s|$)/.test(text.trim())
    ? undefined
    : 'This is not a public key, which is one line that starts with ssh-ed25519.';
}

export function KeyForm({ onDone }: { onDone?: () => void }) {
  const registering = operation('post', '/me/ssh-keys', {});
  const [text, setText] = useDraft<string>(registering.name, 'key', '', isNoPublicKey);
  const fault = faultOf(text);
  const isWhole = text.trim() !== '' && fault === undefined;
  const done = () => {
    setText('');
    onDone?.();
  };
  return (
    <>
      <WriteForm
        operation={registering}
        topics={['me']}
        onDone={done}
        body={isWhole ? { public_key: text.trim() } : undefined}
        label="Register the key"
        usualReason="My SSH key"
      >
        <label htmlFor="public-key">Public key</label>
        <textarea
          id="public-key"
          value={text}
          rows={3}
          onChange={(event) => setText(event.target.value)}
          required
          spellCheck={false}
          autoComplete="off"
          placeholder="ssh-ed25519 AAAAC3Nza… you@laptop"
          aria-describedby="public-key-fault"
          aria-invalid={fault !== undefined}
        />
        <p id="public-key-fault" className="fault" role="alert">
          {fault}
        </p>
        <KeyFile onRead={setText} />
      </WriteForm>
      <MakeKey />
    </>
  );
}

function KeyFile({ onRead }: { onRead: (text: string) => void }) {
  const take = async (file: File | undefined) => {
    if (file) onRead(file.size > 20_000 ? 'too large' : await file.text());
  };
  return (
    <>
      <label htmlFor="key-file">
        Or choose a file <span className="soft">(it ends in .pub)</span>
      </label>
      <input
        id="key-file"
        type="file"
        accept=".pub,text/plain"
        onChange={(event) => void take(event.target.files?.[0])}
      />
    </>
  );
}

const systems = [
  { name: 'Linux, macOS', make: 'ssh-keygen -t ed25519', show: 'cat ~/.ssh/id_ed25519.pub' },
  {
    name: 'Windows (PowerShell)',
    make: 'ssh-keygen -t ed25519',
    show: 'type $env:USERPROFILE\\.ssh\\id_ed25519.pub',
  },
] as const;

function MakeKey() {
  return (
    <details>
      <summary>No key yet? Create one</summary>
      {systems.map(({ name, make, show }) => (
        <div key={name}>
          <h3>{name}</h3>
          <CopyLine text={make} label={`create a key on ${name}`} />
          <CopyLine text={show} label={`show the public key on ${name}`} />
        </div>
      ))}
      <p className="soft">Give it a passphrase. The file without .pub never leaves your machine.</p>
    </details>
  );
}
