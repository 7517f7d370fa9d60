// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// Names of processes, which are also those of their binaries.
const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
)

const (
	retryInterval = time.Second
	// lockInterval is the interval of attempts to lock a cluster that is in use.
	lockInterval = 100 * time.Millisecond
)

// cluster is the folder of a cluster, whether it exists or not.
type cluster struct {
	uid             types.UID
	dir             string
	endWithProvider bool
}

// record has the decisions about a cluster.
type record struct {
	// Namespace and Name are those of the Cluster, for users who inspect the folder.
	Namespace, Name string
	Version         string
	Port            int
	// Served reports whether the cluster has been ready once. Then its address is known to others, and does not change.
	Served bool
}

func (c cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c cluster) certificates() localserver.Certificates {
	return localserver.Certificates{Dir: c.file("pki")}
}

func (c cluster) process(name string) localserver.Process {
	return localserver.Process{Dir: c.dir, Name: name, Tied: c.endWithProvider, SharesSession: c.endWithProvider}
}

func (c cluster) etcdPrefix() string { return "/clusters/" + string(c.uid) }

func (c cluster) server(r record) string { return "https://" + localserver.Address(r.Port) }

func (c cluster) read() (r record, err error) { return r, readJSON(c.file("cluster.json"), &r) }

func (c cluster) write(r record) error { return writeJSON(c.file("cluster.json"), r) }

// Ensure starts the processes of a cluster, in the version that the Cluster specifies.
func (p *Provider) Ensure(
	ctx context.Context, object *v1alpha1.Cluster, _ clusterprovider.Profile,
) (state clusterprovider.State, err error) {
	c, err := p.clusterOf(object)
	if err != nil {
		return state, err
	}
	if err := p.own(ctx); err != nil {
		return state, err
	}
	// Do not wait for a restart of kube-apiserver: the object has to report it.
	mu := p.clusters.of(c.uid)
	for !mu.TryLock() {
		if loaded := p.issuersLoaded(c); loaded.Status != metav1.ConditionTrue {
			return clusterprovider.State{Conditions: []metav1.Condition{loaded}, Info: loaded.Message, RetryAfter: retryInterval}, nil
		}
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-time.After(lockInterval):
		}
	}
	defer mu.Unlock()
	defer func() { state.Conditions = append(state.Conditions, p.issuersLoaded(c)) }()
	r, version, err := p.decide(ctx, c, object)
	if err != nil {
		return state, err
	}
	if err := c.prepare(r); err != nil {
		return state, err
	}
	etcd, err := p.ensureEtcd(ctx)
	if err != nil {
		return state, err
	}
	proc := c.process(apiServer)
	if err := p.supervise(proc, version.bin(apiServer), c.apiServerArgs(r, etcd)); err != nil {
		return state, err
	}
	state.Info, state.RetryAfter = c.server(r), retryInterval
	state.Endpoints.Set(v1alpha1.APISERVER_ENDPOINT_EXTERNAL, c.server(r))
	admin, err := c.admin(r)
	if err != nil {
		return state, err
	}
	if err := admin.ready(ctx); err != nil {
		state.Info = fmt.Sprintf("%s is not ready yet: %v", apiServer, err)
		return state, nil
	}
	p.attempt(proc, false)
	if err := p.restarted(ctx, c, admin); err != nil {
		state.Info = fmt.Sprintf("%s; %v", restartMessage, err)
		return state, nil
	}
	state.Version, err = admin.version()
	if err != nil {
		return state, err
	}
	proc = c.process(controllerManager)
	if err := p.supervise(proc, version.bin(controllerManager), c.controllerManagerArgs()); err != nil {
		return state, err
	}
	if !r.Served && !admin.aggregates(ctx) {
		state.Info = controllerManager + " is not ready yet"
		return state, nil
	}
	p.attempt(proc, false)
	if !r.Served {
		r.Served = true
		if err := c.write(r); err != nil {
			return state, err
		}
	}
	state.Ready, state.RetryAfter = true, 0
	return state, nil
}

// decide creates the folder of a cluster, and records its version and port.
func (p *Provider) decide(ctx context.Context, c cluster, object *v1alpha1.Cluster) (record, release, error) {
	before, err := c.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return record{}, release{}, err
	}
	version, err := p.versions.choose(ctx, object.Spec.Kubernetes.Version, before.Version)
	if err != nil {
		return record{}, release{}, err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return record{}, release{}, err
	}
	after := before
	after.Namespace, after.Name, after.Version = object.Namespace, object.Name, version.String()
	running, err := c.process(apiServer).Running()
	if err != nil {
		return record{}, release{}, err
	}
	p.portsMu.Lock()
	defer p.portsMu.Unlock()
	if after.Port == 0 || !running && !free(after.Port) {
		if after.Served {
			return record{}, release{}, fmt.Errorf("port %d, which clients of the cluster use, is in use by another process: stop that process",
				after.Port)
		}
		ports, err := p.choosePorts(1)
		if err != nil {
			return record{}, release{}, err
		}
		after.Port = ports[0]
	}
	if after == before {
		return after, version, nil
	}
	return after, version, c.write(after)
}

// prepare creates the files that the processes read.
func (c cluster) prepare(r record) error {
	certs := c.certificates()
	authorities, err := authorities(certs, string(c.uid), serverCA, clientCA)
	if err != nil {
		return err
	}
	if err := errors.Join(
		authorities[serverCA].Server(apiServer, apiServer, "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
		authorities[clientCA].Client("admin", pkix.Name{CommonName: "cluster-provider", Organization: []string{"system:masters"}}),
		authorities[clientCA].Client(controllerManager, pkix.Name{CommonName: "system:kube-controller-manager"}),
	); err != nil {
		return err
	}
	if err := certs.SigningKey(localserver.ServiceAccountKey); err != nil {
		return err
	}
	if !exists(c.authenticationFile()) {
		if err := c.writeAuthentication(r, nil); err != nil {
			return err
		}
	}
	const name = "local"
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: c.server(r), CertificateAuthority: certs.Cert(serverCA)}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			name: {ClientCertificate: certs.Cert(controllerManager), ClientKey: certs.Key(controllerManager)},
		},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return err
	}
	return localserver.WriteFile(c.file(controllerManager+".kubeconfig"), kubeconfig)
}

// The CAs of a directory of certificates. Each is for one purpose, so that a certificate can be used for one purpose only.
const (
	// serverCA signs the certificates of servers. Users of a cluster know it: it does not change.
	serverCA = "ca"
	clientCA = "client-ca"
	peerCA   = "peer-ca"
)

// authorities creates CAs of an owner, or returns the existing ones.
func authorities(certs localserver.Certificates, owner string, names ...string) (map[string]*localserver.Authority, error) {
	all := map[string]*localserver.Authority{}
	for _, name := range names {
		authority, err := certs.Authority(name, "cluster-provider-local-"+owner+"-"+name)
		if err != nil {
			return nil, err
		}
		all[name] = authority
	}
	return all, nil
}

func (c cluster) apiServerArgs(r record, etcd etcd) []string {
	server := localserver.KubeAPIServer{
		Port: r.Port, Certificates: c.certificates(), Server: apiServer, ClientCA: clientCA, Issuer: localserver.DefaultIssuer, Etcd: etcd.Etcd,
	}
	return append(server.Args(), "--authentication-config="+c.authenticationFile(), "--etcd-prefix="+c.etcdPrefix())
}

func (c cluster) controllerManagerArgs() []string {
	certs := c.certificates()
	return []string{
		// It needs no serving port.
		"--secure-port=0",
		"--kubeconfig=" + c.file(controllerManager+".kubeconfig"),
		"--leader-elect=false", "--use-service-account-credentials", "--controllers=" + localserver.ControllersWithoutNodes,
		"--service-account-private-key-file=" + certs.Key(localserver.ServiceAccountKey), "--root-ca-file=" + certs.Cert(serverCA),
	}
}

// Remove stops the processes of a cluster and deletes its data in etcd and its folder.
func (p *Provider) Remove(ctx context.Context, object *v1alpha1.Cluster, _ clusterprovider.Profile) (bool, error) {
	c, err := p.clusterOf(object)
	if err != nil {
		return false, err
	}
	err = p.remove(ctx, c)
	return err == nil, err
}

func (p *Provider) remove(ctx context.Context, c cluster) error {
	if err := p.own(ctx); err != nil {
		return err
	}
	defer p.clusters.lock(c.uid)()
	p.restarts.Delete(c.uid)
	if !exists(c.dir) {
		return nil
	}
	for _, name := range []string{controllerManager, apiServer} {
		proc := c.process(name)
		if err := proc.Kill(); err != nil {
			return err
		}
		p.attempt(proc, false)
	}
	etcd, err := p.ensureEtcd(ctx)
	if err != nil {
		return err
	}
	// No process writes there after this. The folder is deleted last: without it, the rest would not be found.
	if err := etcd.deletePrefix(ctx, c.etcdPrefix()); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}

// adminConfig returns a configuration with embedded credentials: it can be used where the folder cannot be read.
func (c cluster) adminConfig(r record) (*rest.Config, error) {
	config := &rest.Config{Host: c.server(r)}
	certs := c.certificates()
	for file, into := range map[string]*[]byte{
		certs.Cert(serverCA): &config.CAData, certs.Cert("admin"): &config.CertData, certs.Key("admin"): &config.KeyData,
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		*into = data
	}
	return config, nil
}
