// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/clusterhub/clusterhub/pkg/kit"
)

// served answers discovery with what is served at the time: errors by group version, or resources.
type served struct {
	discovery.ServerResourcesInterface
	answers func() (map[string][]string, error)
}

func (s served) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	groups, err := s.answers()
	if err != nil {
		return nil, err
	}
	names, ok := groups[groupVersion]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}
	list := &metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

// known is a mapper that knows all kinds, or fails.
type known struct{ err error }

func (k known) KindFor(schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, k.err
}

const (
	clusters = "cluster.open-cluster-management.io/v1beta2"
	view     = "view.clusterhub.dev/v1alpha1"
	access   = "clusters.openmcp.cloud/v1alpha1"
)

func all() map[string][]string {
	return map[string][]string{
		clusters: {"managedclustersets", "managedclustersets/status", "managedclustersetbindings"},
		view:     {"clustersetmembers"},
		access:   {"clusters", "clusterprofiles", "clusterrequests", "accessrequests"},
	}
}

// setsAndAccess are the groups of a process without registration and placements.
var setsAndAccess = []string{setsControllers, accessControllers}

// needed returns what such a process waits for.
func needed() []schema.GroupVersionResource {
	o := NewOptions()
	o.Controllers = setsAndAccess
	return watched((&controllers{Options: o}).enabled())
}

// A process waits only for resources that it may read; it does not wait for those of permissions that it only grants to others.
func TestWatched_MatchesControllersOfProcess(t *testing.T) {
	const registers = "cluster.open-cluster-management.io/v1, Resource=managedclusters"
	const sets = "cluster.open-cluster-management.io/v1beta2, Resource=managedclustersets"
	for group, want := range map[string][]string{
		certificatesControllers: {registers},
		registrationControllers: {registers, sets},
		setsControllers: {sets, "cluster.open-cluster-management.io/v1beta2, Resource=managedclustersetbindings",
			"view.clusterhub.dev/v1alpha1, Resource=clustersetmembers"},
		placementsControllers: {registers, "cluster.open-cluster-management.io/v1alpha1, Resource=addonplacementscores", sets,
			"cluster.open-cluster-management.io/v1beta2, Resource=managedclustersetbindings",
			"cluster.open-cluster-management.io/v1beta1, Resource=placements", "cluster.open-cluster-management.io/v1beta1, Resource=placementdecisions"},
		worksControllers: {"work.open-cluster-management.io/v1alpha1, Resource=manifestworkreplicasets",
			"work.open-cluster-management.io/v1alpha1, Resource=manifestworkreplicasetrevisions", "work.open-cluster-management.io/v1, Resource=manifestworks",
			"cluster.open-cluster-management.io/v1beta1, Resource=placements", "cluster.open-cluster-management.io/v1beta1, Resource=placementdecisions",
			registers, sets, "cluster.open-cluster-management.io/v1beta2, Resource=managedclustersetbindings"},
		edgeControllers: {registers, sets, "cluster.open-cluster-management.io/v1beta2, Resource=managedclustersetbindings",
			"edge.clusterhub.dev/v1alpha1, Resource=edgenodes", "edge.clusterhub.dev/v1alpha1, Resource=edgeservices",
			"edge.clusterhub.dev/v1alpha1, Resource=deploymentpolicies", "edge.clusterhub.dev/v1alpha1, Resource=deploymentpatterns",
			"edge.clusterhub.dev/v1alpha1, Resource=edgeplacements", "work.open-cluster-management.io/v1, Resource=manifestworks"},
		accessControllers: {"clusters.openmcp.cloud/v1alpha1, Resource=clusters", "clusters.openmcp.cloud/v1alpha1, Resource=accessrequests",
			"clusters.openmcp.cloud/v1alpha1, Resource=clusterprofiles", "clusters.openmcp.cloud/v1alpha1, Resource=clusterrequests"},
	} {
		o := NewOptions()
		o.Controllers = []string{group}
		var got []string
		for _, resource := range watched((&controllers{Options: o}).enabled()) {
			got = append(got, resource.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s wait for %q, want %q", group, got, want)
		}
	}
}

// If the placement controller of upstream writes decisions, ours does not: it does not even have the permissions.
func TestControllers_WithoutPlacementsWriteNoDecisions(t *testing.T) {
	decides := func(groups []string) (decides bool) {
		o, held := NewOptions(), false
		o.Controllers = groups
		decides = slices.ContainsFunc((&controllers{Options: o}).enabled(), func(c kit.Controller) bool { return c.Name == "placementscheduler" })
		for _, right := range o.Rights() {
			resource, _, _ := strings.Cut(right.Resource, "/")
			writes := slices.ContainsFunc(right.Verbs, func(verb string) bool { return verb != "list" && verb != "watch" })
			if resource == "placements" || resource == "placementdecisions" {
				held = held || writes
			}
		}
		if held != decides {
			t.Errorf("with --controllers=%s, whether decisions are written: %t, and whether that takes rights: %t", groups, decides, held)
		}
		return decides
	}
	if !decides(NewOptions().Controllers) {
		t.Error("by default no decision is written")
	}
	without := slices.DeleteFunc(slices.Clone(allControllers), func(group string) bool { return group == placementsControllers })
	if decides(without) {
		t.Errorf("--controllers=%s write decisions", without)
	}
}

func TestMissing_ListsUnservedResources(t *testing.T) {
	for name, test := range map[string]struct {
		change func(map[string][]string)
		err    error
		mapper error
		want   string
	}{
		"everything is served": {change: func(map[string][]string) {}},
		"no APIService": {
			change: func(g map[string][]string) { delete(g, view) },
			want:   view + " is not served: is its APIService registered?",
		},
		"a version without a resource": {
			change: func(g map[string][]string) { g[clusters] = g[clusters][:1] },
			want:   clusters + " has no managedclustersetbindings",
		},
		"discovery that lags behind": {
			mapper: errors.New("no matches"),
			want:   "the discovery of the hub's kube-apiserver: no matches",
		},
		"the server behind the APIService is away": {
			err:  apierrors.NewServiceUnavailable("no endpoints"),
			want: clusters + ": no endpoints",
		},
	} {
		t.Run(name, func(t *testing.T) {
			groups := all()
			if test.change != nil {
				test.change(groups)
			}
			answers := func() (map[string][]string, error) { return groups, test.err }
			if got := missing(served{answers: answers}, known{test.mapper}, needed()); got != test.want {
				t.Errorf("missing %q, want %q", got, test.want)
			}
		})
	}
}

func TestWaitUntilServed_WaitsForUnavailableServer(t *testing.T) {
	asked := 0
	answers := func() (map[string][]string, error) {
		asked++
		switch {
		case asked < 5:
			return nil, errors.New("connection refused")
		case asked < 10:
			return nil, apierrors.NewServiceUnavailable("away")
		case asked < 15:
			return map[string][]string{}, nil
		}
		return all(), nil
	}
	if err := waitUntilServed(t.Context(), served{answers: answers}, known{}, needed(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	never := func() (map[string][]string, error) { return nil, errors.New("connection refused") }
	if err := waitUntilServed(ended, served{answers: never}, known{}, needed(), time.Millisecond); err == nil {
		t.Error("want an error when the context ends")
	}
}

func TestValidate_ErrorNamesFlag(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"defaults with a kubeconfig": {change: func(*Options) {}},
		"no kubeconfig":              {change: func(o *Options) { o.Kubeconfig = "" }, want: "--kubeconfig must"},
		"no requests":                {change: func(o *Options) { o.QPS = 0 }, want: "--kube-api-qps"},
		"no burst":                   {change: func(o *Options) { o.Burst = -1 }, want: "--kube-api-burst"},
		"no namespace": {
			change: func(o *Options) { o.LeaderElection.Namespace = "" }, want: "--leader-elect-namespace",
		},
		"no Lease":      {change: func(o *Options) { o.LeaderElection.Name = "" }, want: "--leader-elect-resource-name"},
		"no controller": {change: func(o *Options) { o.Controllers = nil }, want: "--controllers must name at least one of sets, "},
		"an unknown one": {
			change: func(o *Options) { o.Controllers = []string{"sets", "csr"} },
			want:   `--controllers: unknown controller "csr", use one of sets, placements, works, edge, access, registration, certificates`,
		},
		"no retry": {
			change: func(o *Options) { o.LeaderElection.RetryPeriod = 0 }, want: "--leader-elect-retry-period",
		},
		"a deadline before the second try": {
			change: func(o *Options) { o.LeaderElection.RenewDeadline = 2 * time.Second },
			want:   "--leader-elect-renew-deadline must be above 2.4s",
		},
		"a lease that ends before the deadline": {
			change: func(o *Options) { o.LeaderElection.LeaseDuration = 10 * time.Second },
			want:   "--leader-elect-lease-duration must be above the renew deadline of 10s",
		},
		"no leader election, whatever its flags": {
			change: func(o *Options) { o.LeaderElection = LeaderElectionOptions{} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.Kubeconfig = "kubeconfig"
			test.change(o)
			err := o.Validate()
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestFlags_DisableFeature(t *testing.T) {
	o := NewOptions()
	if !o.FeatureGate.Enabled(DefaultClusterSet) {
		t.Error("DefaultClusterSet is off by default")
	}
	set := o.Flags()
	if err := set.FlagSet("features").Parse([]string{"--feature-gates=DefaultClusterSet=false"}); err != nil {
		t.Fatal(err)
	}
	if o.FeatureGate.Enabled(DefaultClusterSet) {
		t.Error("DefaultClusterSet cannot be turned off")
	}
}

func TestRun_FailsWithOneLine(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"no kubeconfig": filepath.Join(t.TempDir(), "missing"), "a broken kubeconfig": broken,
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.Kubeconfig = path
			err := o.Run(t.Context())
			if err == nil || strings.Contains(err.Error(), "\n") ||
				!strings.HasPrefix(err.Error(), "hub-controller-manager cannot start: reading --kubeconfig: ") {
				t.Errorf("error %q", err)
			}
		})
	}
}
