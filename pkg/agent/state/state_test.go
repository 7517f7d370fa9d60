// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"maps"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestState_PreservesOtherKeysOfSecret(t *testing.T) {
	const namespace = "agent"
	client := kubefake.NewClientset()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: registration.HubKubeconfigSecret},
		Data: map[string][]byte{"others": []byte("x")}}
	if err := client.Tracker().Add(secret); err != nil {
		t.Fatal(err)
	}
	s := &Store{Client: client, Namespace: namespace}
	if _, err := s.Update(t.Context(), func(s *State) { s.ClusterName = "c1" }); err != nil {
		t.Fatal(err)
	}
	got, err := client.CoreV1().Secrets(namespace).Get(t.Context(), secret.Name, metav1.GetOptions{})
	if err != nil || string(got.Data["others"]) != "x" || string(got.Data[registration.KeyClusterName]) != "c1" {
		t.Errorf("got %v, %v", got.Data, err)
	}
}

// TestRefused_WritesChangesAndCreatesNoSecret: Refused is called after each read, also by an agent that has just left.
func TestRefused_WritesChangesAndCreatesNoSecret(t *testing.T) {
	client := kubefake.NewClientset()
	s := &Store{Client: client, Namespace: "agent"}
	requests := func(refusal string) (n int) {
		t.Helper()
		client.ClearActions()
		if err := s.Refused(t.Context(), refusal); err != nil {
			t.Fatal(err)
		}
		return len(client.Actions())
	}
	if n := requests(registration.RefusalNotAccepted); n != 1 || requests(registration.RefusalNotAccepted) != 0 {
		t.Errorf("without a secret it was asked for %d times", n)
	}
	if list, err := client.CoreV1().Secrets("agent").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Fatalf("there are %d secrets: %v", len(list.Items), err)
	}
	if _, err := s.Update(t.Context(), func(s *State) { s.ClusterName = "c1" }); err != nil {
		t.Fatal(err)
	}
	for _, refusal := range []string{"", registration.RefusalNoCluster, registration.RefusalNotAccepted, ""} {
		if n := requests(refusal); n != 2 {
			t.Errorf("%q: %d requests", refusal, n)
		}
		for range 3 {
			if n := requests(refusal); n != 0 {
				t.Errorf("%q, once more: %d requests", refusal, n)
			}
		}
		secret, err := client.CoreV1().Secrets("agent").Get(t.Context(), registration.HubKubeconfigSecret, metav1.GetOptions{})
		if _, there := secret.Data[registration.KeyRefusal]; err != nil || there != (refusal != "") || string(secret.Data[registration.KeyRefusal]) != refusal {
			t.Errorf("%q: the secret has %q: %v", refusal, secret.Data, err)
		}
	}
}

// FuzzState: the content of the Secret stays, both the agent's own keys as they are read, and those of others.
func FuzzState(f *testing.F) {
	f.Add("kubeconfig", []byte("a"), "next.csr", []byte("csr-1"))
	f.Add("tls.key", []byte{0xff, 0}, "other", []byte("x"))
	f.Add("cluster-name", []byte(""), "cluster-name", []byte("c1"))
	f.Fuzz(func(t *testing.T, key1 string, value1 []byte, key2 string, value2 []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{key1: value1, key2: value2}}
		before := maps.Clone(secret.Data)
		s := stateOf(secret.Data)
		s.writeTo(secret)
		for key, value := range before {
			if got, ok := secret.Data[key]; !bytes.Equal(got, value) || !ok && len(value) > 0 {
				t.Errorf("%s was %q and is %q, %t", key, value, got, ok)
			}
		}
		if s.writeTo(secret) {
			t.Error("it is written a second time")
		}
		written := &corev1.Secret{}
		s.writeTo(written)
		if again := stateOf(written.Data); again.ClusterName != s.ClusterName || again.NextCSR != s.NextCSR || !bytes.Equal(again.Key, s.Key) || !bytes.Equal(again.Kubeconfig, s.Kubeconfig) {
			t.Errorf("%q became %q", s.ClusterName, again.ClusterName)
		}
	})
}

// The keys are a format: older and newer agents read each other's secret, and other programs mount it.
func TestState_KeysAreStable(t *testing.T) {
	data := map[string][]byte{}
	for _, key := range []string{"cluster-name", "agent-name", "kubeconfig", "tls.crt", "tls.key", "next.key", "next.csr", "registered-key-sha256"} {
		data[key] = []byte("the " + key)
	}
	got := stateOf(data)
	want := State{ClusterName: "the cluster-name", AgentName: "the agent-name", Kubeconfig: []byte("the kubeconfig"), Cert: []byte("the tls.crt"),
		Key: []byte("the tls.key"), NextKey: []byte("the next.key"), NextCSR: "the next.csr", RegisteredKey: "the registered-key-sha256"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the secret is read as %+v", got)
	}
	secret := &corev1.Secret{}
	want.writeTo(secret)
	if !reflect.DeepEqual(secret.Data, data) {
		t.Errorf("the state is written as %s", secret.Data)
	}
}
