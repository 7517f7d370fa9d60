// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// etcdTimeout is the timeout for etcd to start, and to respond.
const etcdTimeout = 30 * time.Second

// etcdRecord has the decisions about the provider's own etcd.
type etcdRecord struct{ ClientPort, PeerPort int }

// etcd is the provider's own etcd.
type etcd struct{ localserver.Etcd }

// deletePrefix deletes all data of a cluster.
func (e etcd) deletePrefix(ctx context.Context, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	client, err := e.Connect()
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Delete(ctx, prefix+"/", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("deleting the keys below %s from etcd: %w", prefix, err)
	}
	return nil
}

func (p *Provider) etcdFile(name string) string { return p.path("etcd", name) }

func (p *Provider) etcdCertificates() localserver.Certificates {
	return localserver.Certificates{Dir: p.etcdFile("pki")}
}

func (p *Provider) etcd(ports etcdRecord) etcd {
	return etcd{localserver.Etcd{
		Members:      []localserver.EtcdMember{{Port: ports.ClientPort, PeerPort: ports.PeerPort, DataDir: p.etcdFile("data")}},
		Certificates: p.etcdCertificates(),
		ServerCA:     serverCA, ClientCA: clientCA, PeerCA: peerCA, Server: "etcd", Client: "client", Peer: "peer",
		UnsafeNoFsync: p.options.UnsafeNoFsync,
	}}
}

func (p *Provider) etcdProcess() localserver.Process {
	return localserver.Process{Dir: p.path("etcd"), Name: "etcd", Tied: p.options.EndWithProvider, SharesSession: p.options.EndWithProvider}
}

// ensureEtcd starts the provider's own etcd unless it runs, and waits until it listens.
func (p *Provider) ensureEtcd(ctx context.Context) (etcd, error) {
	p.etcdMu.Lock()
	defer p.etcdMu.Unlock()
	authorities, err := authorities(p.etcdCertificates(), "etcd", serverCA, clientCA, peerCA) // creates the folder, too
	if err != nil {
		return etcd{}, err
	}
	proc := p.etcdProcess()
	ports, err := p.etcdPorts(proc)
	if err != nil {
		return etcd{}, err
	}
	e := p.etcd(ports)
	if err := e.Identify(authorities); err != nil {
		return etcd{}, err
	}
	if err := p.supervise(proc, filepath.Join(p.options.BinDir, "etcd"), e.Args(0)); err != nil {
		return etcd{}, err
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, etcdTimeout, true, func(ctx context.Context) (bool, error) {
		if running, err := proc.Running(); err != nil || !running {
			p.attempt(proc, false)
			return false, errors.Join(err, proc.Ended())
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", localserver.Address(ports.ClientPort))
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if wait.Interrupted(err) {
		return etcd{}, fmt.Errorf("etcd is not listening on port %d after %s: see its log %s", ports.ClientPort, etcdTimeout, proc.Log())
	}
	if err != nil {
		return etcd{}, err
	}
	p.attempt(proc, false)
	return e, nil
}

// etcdPorts returns the ports of etcd. It chooses others when another program uses one of them: only our own processes use them, and they are
// restarted with the new ones.
func (p *Provider) etcdPorts(proc localserver.Process) (r etcdRecord, err error) {
	err = readJSON(p.etcdFile("etcd.json"), &r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	running, runningErr := proc.Running()
	if runningErr != nil {
		return r, runningErr
	}
	if err == nil && (running || free(r.ClientPort) && free(r.PeerPort)) {
		return r, nil
	}
	p.portsMu.Lock()
	defer p.portsMu.Unlock()
	ports, err := p.choosePorts(2)
	if err != nil {
		return r, err
	}
	r = etcdRecord{ClientPort: ports[0], PeerPort: ports[1]}
	return r, writeJSON(p.etcdFile("etcd.json"), r)
}
