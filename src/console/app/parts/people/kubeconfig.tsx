/** A cluster's kubeconfig, to save and to copy, and the lines that use it. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type ClusterUse, plainName, readKubeconfig } from '../../reads.ts';
import { Button } from '../controls.tsx';
import { CopyLine } from '../copy.tsx';
import { Loaded, Problem } from '../page.tsx';
import { save } from '../save.tsx';

/** The file for kubectl, and the line that signs in with it. It holds no secret. */
export function Kubeconfig({ cluster }: { cluster: ClusterUse }) {
  const [isOpen, setOpen] = useState(false);
  const file = useQuery({ ...readKubeconfig(cluster), enabled: isOpen });
  const { cluster_name: name } = cluster;
  const plain = plainName(cluster);
  const download = async () => {
    const { data } = await file.refetch();
    if (data !== undefined) save(`${plain}.kubeconfig`, 'application/yaml', data);
  };
  return (
    <>
      <p className="buttons">
        <Button
          className="second"
          onClick={() => void download()}
          aria-label={`Download kubeconfig of ${name}`}
        >
          Download kubeconfig
        </Button>
      </p>
      {file.error && !isOpen && <Problem error={file.error} />}
      <p className="soft">Then sign in, from where it was saved:</p>
      <CopyLine
        text={`kubectl --kubeconfig ${plain}.kubeconfig auth whoami`}
        label={`sign in to ${name} with kubectl`}
      />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>kubeconfig, sign-in plugin, andromeda command</summary>
        {isOpen && (
          <Loaded of={file}>{(text) => <CopyLine text={text} label={`kubeconfig of ${name}`} />}</Loaded>
        )}
        <p className="soft">Signing in takes a kubectl plugin, once for each machine:</p>
        <CopyLine text="kubectl krew install oidc-login" label="install the sign-in plugin" />
        <p className="soft">With the andromeda command, into the file that kubectl uses anyway:</p>
        <CopyLine
          text={`andromeda kubeconfig ${plain} --merge ~/.kube/config --use`}
          label={`merge the kubeconfig of ${name}`}
        />
      </details>
    </>
  );
}
