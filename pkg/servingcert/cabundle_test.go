// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorfake "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
)

func apiService(name, namespace, service string) *apiregistrationv1.APIService {
	s := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7", Annotations: map[string]string{"owner": "admin"}},
		Spec:       apiregistrationv1.APIServiceSpec{GroupPriorityMinimum: 1000, VersionPriority: 15},
	}
	if service != "" {
		s.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: namespace, Name: service}
	}
	return s
}

func getAPIService(t *testing.T, client *aggregatorfake.Clientset, name string) *apiregistrationv1.APIService {
	t.Helper()
	got, err := client.ApiregistrationV1().APIServices().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// run runs managers until the test ends, and waits for them.
func run(t *testing.T, managers ...*Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, m := range managers {
		wg.Go(func() { m.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func TestRun_SetsCABundleOfOwnAPIServices(t *testing.T) {
	others := []*apiregistrationv1.APIService{
		apiService("v1.", "", ""),
		apiService("v1.other", "other", testService),
		apiService("v1beta1.other", testNamespace, "metrics-server"),
	}
	others[2].Spec.CABundle = []byte("theirs")
	insecure := apiService("v1.insecure", testNamespace, testService)
	insecure.Spec.InsecureSkipTLSVerify = true
	objects := []runtime.Object{
		apiService("v1.a", testNamespace, testService), apiService("v1.b", testNamespace, testService), insecure,
	}
	for _, other := range others {
		objects = append(objects, other.DeepCopy())
	}
	aggregator := aggregatorfake.NewClientset(objects...)
	m := mustNew(t.Context(), t, testConfig(newKubernetes(), aggregator, newClock()))
	run(t, m)

	for _, name := range []string{"v1.a", "v1.b"} {
		eventually(t, name+" has the bundle", func() bool {
			return bytes.Equal(getAPIService(t, aggregator, name).Spec.CABundle, m.CABundle())
		})
		got := getAPIService(t, aggregator, name)
		if got.Spec.InsecureSkipTLSVerify || got.Annotations["owner"] != "admin" || got.Spec.VersionPriority != 15 {
			t.Errorf("%s was changed beyond its caBundle: %+v", name, got)
		}
	}
	// One is created late, and one was changed by an admin: once they are right, any wrong write has happened.
	late := apiService("v1.late", testNamespace, testService)
	if _, err := aggregator.ApiregistrationV1().APIServices().Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	drifted := getAPIService(t, aggregator, "v1.a")
	drifted.Spec.CABundle = []byte("drifted")
	if _, err := aggregator.ApiregistrationV1().APIServices().Update(t.Context(), drifted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v1.late", "v1.a"} {
		eventually(t, name+" has the bundle", func() bool {
			return bytes.Equal(getAPIService(t, aggregator, name).Spec.CABundle, m.CABundle())
		})
	}

	for _, other := range others {
		if got := getAPIService(t, aggregator, other.Name); !bytes.Equal(got.Spec.CABundle, other.Spec.CABundle) {
			t.Errorf("%s, which is not ours, has caBundle %q", other.Name, got.Spec.CABundle)
		}
	}
	ours := []string{"v1.a", "v1.b", "v1.late"}
	for _, action := range aggregator.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		if !slices.Contains(ours, patch.GetName()) {
			t.Errorf("patch of %s", patch.GetName())
		}
		var fields map[string]map[string]any
		if err := json.Unmarshal(patch.GetPatch(), &fields); err != nil {
			t.Fatal(err)
		}
		if patch.GetPatchType() != types.MergePatchType || len(fields) != 2 || len(fields["spec"]) != 1 ||
			fields["spec"]["caBundle"] == nil || len(fields["metadata"]) != 1 || fields["metadata"]["resourceVersion"] != "7" {
			t.Errorf("patch %s", patch.GetPatch())
		}
	}
}

func TestRun_RetriesAfterFailures(t *testing.T) {
	aggregator := aggregatorfake.NewClientset(apiService("v1.a", testNamespace, testService))
	var attempts atomic.Int32
	aggregator.PrependReactor("patch", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		if attempts.Add(1) <= 2 {
			return true, nil, errors.New("etcdserver: leader changed")
		}
		return false, nil, nil
	})
	var lists atomic.Int32
	aggregator.PrependReactor("list", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		if lists.Add(1) == 1 {
			return true, nil, errors.New("forbidden for now")
		}
		return false, nil, nil
	})
	m := mustNew(t.Context(), t, testConfig(newKubernetes(), aggregator, newClock()))
	run(t, m)
	eventually(t, "the bundle is set after failures", func() bool {
		return bytes.Equal(getAPIService(t, aggregator, "v1.a").Spec.CABundle, m.CABundle())
	})
	if attempts.Load() != 3 {
		t.Errorf("%d patches, want 3", attempts.Load())
	}
}

func TestRun_StaleReplicaDoesNotRevertRotation(t *testing.T) {
	kube, clock := newKubernetes(), newClock()
	aggregator := aggregatorfake.NewClientset(apiService("v1.a", testNamespace, testService))
	a := mustNew(t.Context(), t, testConfig(kube, aggregator, clock))
	stale := mustNew(t.Context(), t, testConfig(kube, aggregator, clock))
	before := a.CABundle()
	run(t, a, stale)
	eventually(t, "the first bundle is set", func() bool {
		return bytes.Equal(getAPIService(t, aggregator, "v1.a").Spec.CABundle, before)
	})

	// Only a uses the clock: stale learns of the rotation from the APIService.
	due := contentOf(a)
	clock.SetTime(due.current.rotateAt().Add(-syncInterval / 2)) // both wake, and nothing is due
	eventually(t, "both wait", clock.HasWaiters)
	rotated, changed, err := due.advance(clock.Now().Add(syncInterval))
	if err != nil || !changed {
		t.Fatalf("no rotation: %v", err)
	}
	secret := getSecret(t, kube)
	if err := encode(rotated, secret); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Secrets(testNamespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	mustSync(t.Context(), t, a)
	after := a.CABundle()
	if bytes.Equal(after, before) {
		t.Fatal("no rotation")
	}
	eventually(t, "the new bundle is set", func() bool {
		return bytes.Equal(getAPIService(t, aggregator, "v1.a").Spec.CABundle, after)
	})
	eventually(t, "the stale replica has read the Secret", func() bool { return bytes.Equal(stale.CABundle(), after) })
	sawNew := false
	for _, action := range aggregator.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		var fields struct{ Spec struct{ CABundle []byte } }
		if err := json.Unmarshal(patch.GetPatch(), &fields); err != nil {
			t.Fatal(err)
		}
		if sawNew && bytes.Equal(fields.Spec.CABundle, before) {
			t.Error("the new bundle was overwritten by the old one")
		}
		sawNew = sawNew || bytes.Equal(fields.Spec.CABundle, after)
	}
}

func TestIsShadowed_OwnGroupsServedByHub(t *testing.T) {
	m := &Manager{config: Options{Namespace: testNamespace, Service: testService, Groups: []string{"ours.example.com"}}}
	for _, test := range []struct {
		group, service string
		want           bool
	}{
		{"ours.example.com", "", true}, {"ours.example.com", testService, false}, {"ours.example.com", "another", false},
		{"other.example.com", "", false}, {"", "", false},
	} {
		s := apiService("v1."+test.group, testNamespace, test.service)
		s.Spec.Group = test.group
		if got := m.isShadowed(s); got != test.want {
			t.Errorf("group %q, service %q: %t", test.group, test.service, got)
		}
	}
}
