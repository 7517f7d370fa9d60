// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/binaries"
)

// testOptions returns the options of a provider whose processes die with the test, however it ends. The tests that use them need real processes:
// starting, finding, keeping and stopping them is the purpose of this provider, and only a real kube-apiserver shows whom it trusts.
func testOptions(t *testing.T) Options {
	t.Helper()
	return Options{Dir: t.TempDir(), BinDir: binaries.Kubernetes(t, t.TempDir()), EndWithProvider: true, UnsafeNoFsync: true}
}

func newProvider(t *testing.T, options Options) *Provider {
	t.Helper()
	p, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil && !crashed[p] {
			t.Error(err)
		}
	})
	return p
}

var crashed = map[*Provider]bool{}

// crash ends a provider without letting it do anything, and returns the next one.
func crash(t *testing.T, p *Provider) *Provider {
	t.Helper()
	crashed[p] = true
	if err := p.lock.Close(); err != nil {
		t.Fatal(err)
	}
	return newProvider(t, p.options)
}

func newCluster(name string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uuid.NewUUID()}}
}

// ensure waits until a cluster is ready.
func ensure(t *testing.T, p *Provider, object *v1alpha1.Cluster) (state clusterprovider.State) {
	t.Helper()
	poll := func(ctx context.Context) (_ bool, err error) {
		state, err = p.Ensure(ctx, object, clusterprovider.Profile{Config: configName})
		if err == nil && !state.Ready && (state.RetryAfter == 0 || state.Info == "") {
			t.Errorf("a cluster that is not ready has no reason or retry: %+v", state)
		}
		return state.Ready, err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, await.Limit, true, poll); err != nil {
		t.Fatalf("%s is not ready: %v (%s)", object.Name, err, state.Info)
	}
	return state
}

func adminOf(t *testing.T, p *Provider, object *v1alpha1.Cluster) (*rest.Config, kubernetes.Interface) {
	t.Helper()
	config, err := p.Connect(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	return config, clientOf(t, config)
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// withToken returns the configuration of a user with a token for the cluster of an admin.
func withToken(admin *rest.Config, token string) *rest.Config {
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token
	return config
}

// whoAmI returns the user that the cluster authenticates for a client.
func whoAmI(ctx context.Context, client kubernetes.Interface) (authenticationv1.UserInfo, error) {
	reviews := client.AuthenticationV1().SelfSubjectReviews()
	review, err := reviews.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// processes returns the ids of the processes of a program that have all of these in their command lines.
func processes(t *testing.T, program string, arguments ...string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("there is no /proc")
	}
next:
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil { // the process ended
			continue
		}
		name, _, _ := bytes.Cut(line, []byte{0})
		if filepath.Base(string(name)) != program {
			continue
		}
		for _, argument := range arguments {
			if !bytes.Contains(line, []byte(argument)) {
				continue next
			}
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// only returns the one process of a program that a cluster has, and waits for one that is starting.
func only(t *testing.T, p *Provider, program string, uid types.UID) int {
	t.Helper()
	var pids []int
	eventually(t, program+" runs", func() bool {
		pids = processes(t, program, p.cluster(uid).dir)
		return len(pids) > 0
	})
	if len(pids) > 1 {
		t.Fatalf("the cluster has the processes %v of %s, want one", pids, program)
	}
	return pids[0]
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, await.Limit, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// stored returns the number of keys of a cluster in etcd.
func stored(t *testing.T, p *Provider, uid types.UID) int64 {
	t.Helper()
	e, err := p.ensureEtcd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, err := e.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	// All keys: a cluster must have none outside of its prefix either.
	response, err := client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var count int64
	for _, kv := range response.Kvs {
		key := string(kv.Key)
		if strings.Contains(key, string(uid)) {
			count++
		} else if !strings.HasPrefix(key, "/clusters/") && key != "compact_rev_key" { // of the etcd as a whole
			t.Errorf("the key %s is no cluster's", key)
		}
	}
	return count
}
