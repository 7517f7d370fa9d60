// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// TestProvider takes two clusters at once through everything that can happen to them.
func TestProvider(t *testing.T) {
	p := newProvider(t, testOptions(t))
	ctx, blue, green := t.Context(), newCluster("blue"), newCluster("green")
	profile := clusterprovider.Profile{Config: configName}

	blueState, greenState := ensure(t, p, blue), ensure(t, p, green)
	profiles, err := p.Profiles(ctx)
	if err != nil || len(profiles) != 1 || len(profiles[0].Versions) == 0 || profiles[0].Versions[0].Version != blueState.Version {
		t.Errorf("a cluster that asks for no version has %q, the profiles are %+v (%v)", blueState.Version, profiles, err)
	}
	bluePort := loopbackOnly(t, blueState)
	if loopbackOnly(t, greenState) == bluePort {
		t.Fatal("both clusters have one port")
	}
	blueConfig, blueClient := adminOf(t, p, blue)
	greenConfig, greenClient := adminOf(t, p, green)
	if blueConfig.Host != "https://127.0.0.1:"+bluePort {
		t.Errorf("the provider connects to %s, the endpoint has the port %s", blueConfig.Host, bluePort)
	}

	t.Log("What is in one cluster is not in the other")
	for _, name := range []string{"web", "brief"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := blueClient.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := greenClient.CoreV1().Namespaces().Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace of another cluster: %v", err)
	}

	t.Log("A token works in its cluster only, and so does the admin's certificate")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "ann"}}
	accounts := blueClient.CoreV1().ServiceAccounts("web")
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(ctx, "ann", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ann := func() (authenticationv1.UserInfo, error) {
		return whoAmI(ctx, clientOf(t, withToken(blueConfig, token.Status.Token)))
	}
	const annName = "system:serviceaccount:web:ann"
	if user, err := ann(); err != nil || user.Username != annName {
		t.Errorf("the owner of a token is %q: %v", user.Username, err)
	}
	if user, err := whoAmI(ctx, clientOf(t, withToken(greenConfig, token.Status.Token))); !apierrors.IsUnauthorized(err) {
		t.Errorf("the owner of another cluster's token is %q: %v", user.Username, err)
	}
	foreign := *greenConfig
	foreign.CertData, foreign.KeyData = blueConfig.CertData, blueConfig.KeyData
	if user, err := whoAmI(ctx, clientOf(t, &foreign)); !apierrors.IsUnauthorized(err) {
		t.Errorf("the admin of another cluster is %q: %v", user.Username, err)
	}

	t.Log("Namespaces go when they are deleted")
	if err := blueClient.CoreV1().Namespaces().Delete(ctx, "brief", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace goes", func() bool {
		_, err := blueClient.CoreV1().Namespaces().Get(ctx, "brief", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})

	t.Log("A provider that follows one that was killed finds what runs")
	before := only(t, p, apiServer, blue.UID)
	second := newProvider(t, p.options)
	if _, err := second.Profiles(ctx); err != nil {
		t.Error(err)
	}
	if _, err := second.Ensure(ctx, blue, profile); err == nil || !strings.Contains(err.Error(), "another provider is using") {
		t.Errorf("a second provider has the same directory: %v", err)
	}
	p = crash(t, p)
	state, err := p.Ensure(ctx, blue, profile)
	if err != nil || !state.Ready || state.Endpoints[0] != blueState.Endpoints[0] {
		t.Errorf("after the provider was killed the state is %+v (%v)", state, err)
	}
	if after := only(t, p, apiServer, blue.UID); after != before {
		t.Errorf("process %d was replaced by %d", before, after)
	}

	t.Log("Processes that were killed are started again, with all that they had")
	changed, hasLooked := make(chan types.NamespacedName, 100), make(chan struct{})
	var looked sync.Once
	watching, end := context.WithCancel(ctx)
	defer end()
	go p.Watch(watching, func(name types.NamespacedName) { changed <- name },
		func(context.Context) (sets.Set[types.UID], error) {
			looked.Do(func() { close(hasLooked) })
			return sets.New(blue.UID, green.UID), nil
		})
	<-hasLooked // running processes are known before the Clusters are listed
	// noticed waits until each of these clusters is enqueued, and no other is. One may be enqueued more than once: kube-controller-manager exits by
	// itself when nothing responds to it.
	noticed := func(want ...*v1alpha1.Cluster) {
		t.Helper()
		left := sets.New[types.NamespacedName]()
		for _, object := range want {
			left.Insert(types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
		}
		all := left.Clone()
		for len(left) > 0 {
			select {
			case name := <-changed:
				if !all.Has(name) {
					t.Errorf("%s is enqueued", name)
				}
				left.Delete(name)
			case <-time.After(10 * checkInterval):
				t.Fatalf("it is not noticed that a process of %v has ended", left)
			}
		}
	}
	for _, program := range []string{apiServer, controllerManager} {
		before := only(t, p, program, blue.UID)
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		noticed(blue)
		if left := processes(t, program, p.cluster(blue.UID).dir); len(left) > 0 {
			t.Errorf("%v of %s run", left, program)
		}
		if state := ensure(t, p, blue); state.Endpoints[0] != blueState.Endpoints[0] {
			t.Errorf("the endpoints are %v, they were %v", state.Endpoints, blueState.Endpoints)
		}
		if only(t, p, program, blue.UID) == before {
			t.Errorf("%s was not killed", program)
		}
		if user, err := ann(); err != nil || user.Username != annName {
			t.Errorf("the owner of the token is %q: %v", user.Username, err)
		}
	}
	if err := syscall.Kill(p.etcdProcess().PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	noticed(blue, green)
	ensure(t, p, blue)
	ensure(t, p, green)

	t.Log("Processes that hang are started again")
	probed := map[localserver.Process]probes{}
	probe := func() { p.probe(ctx, probed, 2*time.Second) }
	probe()
	if len(probed) != 3 {
		t.Errorf("etcd and two clusters have been seen as %v", probed)
	}
	hang := func(pid int, clusters ...*v1alpha1.Cluster) {
		t.Helper()
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for range hungAfter {
			if syscall.Kill(pid, 0) != nil {
				t.Error("the process has been killed too early")
			}
			probe()
		}
		// A cluster that is in use at that very moment is left to the next probe.
		eventually(t, "the process that hangs is killed", func() bool {
			if syscall.Kill(pid, 0) != nil {
				return true
			}
			probe()
			return false
		})
		noticed(clusters...)
		for _, object := range clusters {
			ensure(t, p, object)
		}
	}
	hang(only(t, p, apiServer, blue.UID), blue)
	probe()
	hang(p.etcdProcess().PID(), blue, green)
	end()
	ensure(t, p, blue)
	if _, err := blueClient.CoreV1().Namespaces().Get(ctx, "web", metav1.GetOptions{}); err != nil {
		t.Errorf("after etcd was killed: %v", err)
	}

	t.Log("What is removed leaves nothing, and the other cluster alone")
	if stored(t, p, blue.UID) == 0 {
		t.Fatal("the cluster has nothing in etcd below its prefix")
	}
	for range 2 {
		if gone, err := p.Remove(ctx, blue, profile); err != nil || !gone {
			t.Fatalf("gone: %t, %v", gone, err)
		}
		nothingLeft(t, p, blue)
	}
	ensure(t, p, green)
	if _, err := greenClient.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	t.Log("Leftovers are deleted if the Cluster does not exist")
	hub, unknown := sets.New(green.UID), errors.New("the hub is away")
	exist := func(context.Context) (sets.Set[types.UID], error) { return hub, unknown }
	if err := p.prune(ctx, exist); !errors.Is(err, unknown) {
		t.Errorf("with a hub that is away: %v", err)
	}
	unknown = nil
	if err := p.prune(ctx, exist); err != nil {
		t.Fatal(err)
	}
	only(t, p, apiServer, green.UID)
	hub.Delete(green.UID)
	if err := p.prune(ctx, exist); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, p, green)
}

// loopbackOnly returns the port of a cluster.
func loopbackOnly(t *testing.T, state clusterprovider.State) string {
	t.Helper()
	external, _ := state.Endpoints.Get(v1alpha1.APISERVER_ENDPOINT_EXTERNAL)
	address, err := url.Parse(external)
	if err != nil || address.Scheme != "https" || address.Hostname() != "127.0.0.1" {
		t.Fatalf("the endpoint is %q: %v", external, err)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip.IP.String(), address.Port()), 5*time.Second)
			if err == nil {
				_ = conn.Close()
				t.Errorf("the cluster listens on %s", ip.IP)
			}
		}
	}
	return address.Port()
}

func nothingLeft(t *testing.T, p *Provider, object *v1alpha1.Cluster) {
	t.Helper()
	for _, program := range []string{apiServer, controllerManager, "sh"} {
		if pids := processes(t, program, string(object.UID)); len(pids) > 0 {
			t.Errorf("the processes %v of %s remain", pids, program)
		}
	}
	if exists(p.cluster(object.UID).dir) {
		t.Error("the folder remains")
	}
	err := filepath.WalkDir(p.options.Dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, string(object.UID)) {
			t.Errorf("%s remains", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if n := stored(t, p, object.UID); n > 0 {
		t.Errorf("%d keys remain in etcd", n)
	}
}

// TestVersions has a second version of Kubernetes that reports another version, and is otherwise the same.
func TestVersions(t *testing.T) {
	options := testOptions(t)
	real, err := filepath.Abs(options.BinDir)
	if err != nil {
		t.Fatal(err)
	}
	options.BinDir = t.TempDir()
	for _, name := range []string{"etcd", apiServer, controllerManager} {
		if err := os.Symlink(filepath.Join(real, name), filepath.Join(options.BinDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	const old = "1.35.9"
	if err := os.Mkdir(filepath.Join(options.BinDir, old), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{apiServer, controllerManager} {
		script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && echo Kubernetes v%s && exit\nexec %s \"$@\"\n",
			old, filepath.Join(real, name))
		if err := os.WriteFile(filepath.Join(options.BinDir, old, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := newProvider(t, options)
	profiles, err := p.Profiles(t.Context())
	if err != nil || len(profiles) != 1 || len(profiles[0].Versions) != 2 || profiles[0].Versions[1].Version != old {
		t.Fatalf("the profiles are %+v: %v", profiles, err)
	}
	newest := profiles[0].Versions[0].Version

	object := newCluster("blue")
	object.Spec.Kubernetes.Version = "1.2.3"
	_, err = p.Ensure(t.Context(), object, profiles[0])
	if err == nil || !strings.Contains(err.Error(), "no Kubernetes 1.2.3 in") ||
		!strings.Contains(err.Error(), newest+", "+old) {
		t.Errorf("an unknown version: %v", err)
	}
	if exists(p.cluster(object.UID).dir) {
		t.Error("a cluster of an unknown version has a folder")
	}

	object.Spec.Kubernetes.Version = old
	ensure(t, p, object)
	runs := func(version, dir string) int {
		t.Helper()
		if r, err := p.cluster(object.UID).read(); err != nil || r.Version != version {
			t.Errorf("the cluster has %q, want %q: %v", r.Version, version, err)
		}
		data, err := os.ReadFile(p.cluster(object.UID).file(apiServer + ".cmdline"))
		if want := filepath.Join(dir, apiServer) + "\n"; err != nil || !strings.HasPrefix(string(data), want) {
			t.Errorf("the process was not started as %s", want)
		}
		return only(t, p, apiServer, object.UID)
	}
	first := runs(old, filepath.Join(options.BinDir, old))
	object.Spec.Kubernetes.Version = "" // does not change
	ensure(t, p, object)
	if again := runs(old, filepath.Join(options.BinDir, old)); again != first {
		t.Errorf("the process %d has been replaced by %d", first, again)
	}
	object.Spec.Kubernetes.Version = newest
	if state := ensure(t, p, object); state.Version != newest {
		t.Errorf("the cluster serves %q", state.Version)
	}
	if again := runs(newest, options.BinDir); again == first {
		t.Error("the process has not been replaced")
	}
	object.Spec.Kubernetes.Version = old
	if _, err := p.Ensure(t.Context(), object, profiles[0]); err == nil || !strings.Contains(err.Error(), "cannot be downgraded") {
		t.Errorf("the cluster goes back: %v", err)
	}
	if gone, err := p.Remove(t.Context(), object, profiles[0]); err != nil || !gone {
		t.Errorf("gone: %t, %v", gone, err)
	}
}
