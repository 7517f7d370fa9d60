// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

const (
	exclusive = v1alpha1.TENANCY_EXCLUSIVE
	shared    = v1alpha1.TENANCY_SHARED
)

// These are openMCP's own cases, with its names.
func TestScheduler_AsOpenMCP(t *testing.T) {
	for name, test := range map[string]struct {
		config string
		before []client.Object
		do     func(f *fixture)
		want   []string
	}{
		"a new exclusive cluster, without another": {
			do: func(f *fixture) { f.ask("exclusive", "foo/exclusive") }, want: []string{"foo/exclusive-qilq5nsb exclusive"},
		},
		"a new exclusive cluster, beside another": {
			before: []client.Object{newCluster("foo/another", "exclusive", exclusive)},
			do:     func(f *fixture) { f.ask("exclusive", "foo/exclusive") },
			want:   []string{"foo/another", "foo/exclusive-qilq5nsb exclusive"},
		},
		"a new shared cluster": {
			do: func(f *fixture) { f.ask("shared", "foo/shared") }, want: []string{"foo/shared-twice-urf5rng2 shared"},
		},
		"share until the capacity of two, then a new one": {
			do:   func(f *fixture) { f.ask("shared", "foo/shared", "foo/shared2", "foo/shared3") },
			want: []string{"foo/shared-twice-urf5rng2 shared shared2", "foo/shared-twice-vsa6ssty shared3"},
		},
		"twenty requests on one cluster": {
			do: func(f *fixture) {
				for i := range 20 {
					f.ask("unlimited", fmt.Sprintf("foo/r%02d", i))
				}
			},
			want: []string{"foo/unlimited r00 r01 r02 r03 r04 r05 r06 r07 r08 r09 r10 r11 r12 r13 r14 r15 r16 r17 r18 r19"},
		},
		"the namespace of the request, and a selector that does not match": {
			config: "scheduler: {scope: Namespaced, purposeMappings: {shared: {selector: {matchLabels: {a: b}}, " +
				"template: {metadata: {labels: {a: b}}, spec: {profile: p, tenancy: Shared}}}}}",
			before: []client.Object{newCluster("bar/other", "shared", shared), newCluster("foo/unlabelled", "shared", shared)},
			do:     func(f *fixture) { f.ask("shared", "bar/one") },
			want:   []string{"bar/other", "bar/shared one", "foo/unlabelled"},
		},
		"all namespaces are looked at, if they are trusted": {
			config: strings.Replace(testConfig, "unlimited: {", "unlimited: {trustedNamespaces: ['*'], ", 1),
			before: []client.Object{newCluster("bar/other", "unlimited", shared)},
			do:     func(f *fixture) { f.ask("unlimited", "foo/one") },
			want:   []string{"bar/other one"},
		},
		"only one namespace is looked at": {
			config: strings.Replace(testConfig, "scheduler:", "scheduler:\n  scope: Namespaced", 1),
			before: []client.Object{newCluster("bar/other", "unlimited", shared)},
			do:     func(f *fixture) { f.ask("unlimited", "foo/one") },
			want:   []string{"bar/other", "foo/unlimited one"},
		},
		"a cluster that is being deleted is not given": {
			before: []client.Object{newCluster("foo/going", "unlimited", shared, "somebody")},
			do: func(f *fixture) {
				f.delete(f.cluster("foo/going"))
				f.ask("unlimited", "foo/one")
			},
			want: []string{"foo/going somebody deleted", "foo/unlimited one"},
		},
		"the strategy Balanced": {
			before: []client.Object{newCluster("foo/a", "unlimited", shared, "x", "y"), newCluster("foo/b", "unlimited", shared, "z"),
				newCluster("foo/c", "unlimited", shared, "v")},
			do:   func(f *fixture) { f.ask("unlimited", "foo/one") },
			want: []string{"foo/a x y", "foo/b one z", "foo/c v"},
		},
		"the strategy Simple": {
			config: strings.Replace(testConfig, "scheduler:", "scheduler:\n  strategy: Simple", 1),
			before: []client.Object{newCluster("foo/a", "unlimited", shared, "x", "y"), newCluster("foo/b", "unlimited", shared)},
			do:     func(f *fixture) { f.ask("unlimited", "foo/one") },
			want:   []string{"foo/a one x y", "foo/b"},
		},
		"the strategy Random": {
			config: strings.Replace(testConfig, "scheduler:", "scheduler:\n  strategy: Random", 1),
			before: []client.Object{newCluster("foo/a", "unlimited", shared), newCluster("foo/b", "unlimited", shared, "x", "y")},
			do:     func(f *fixture) { f.ask("unlimited", "foo/one") },
			want:   []string{"foo/a", "foo/b one x y"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.config == "" {
				test.config = testConfig
			}
			f := newFixture(t, test.config, test.before...)
			test.do(f)
			f.wantClusters(test.want...)
			list := &v1alpha1.ClusterRequestList{}
			if err := f.client.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			for _, r := range list.Items {
				c := r.Status.Cluster
				if !r.Status.IsGranted() || c == nil || r.Status.ObservedGeneration != 1 || r.Finalizers[0] != v1alpha1.ClusterRequestFinalizer {
					t.Fatalf("%s: %+v", r.Name, r)
				}
				if !f.cluster(c.NamespacedName().String()).GetRequestUIDs().Has(string(r.UID)) {
					t.Errorf("%s does not have %s", r.Name, c.Name)
				}
			}
		})
	}
}

func TestScheduler_CreatesClustersFromTemplate(t *testing.T) {
	f := newFixture(t, `
scheduler:
  selectors: {clusters: {matchLabels: {global: "yes"}}}
  purposeMappings:
    mcp:
      selector: {matchLabels: {local: "yes"}}
      template:
        metadata: {name: its-name, namespace: here, labels: {global: "yes", local: "yes"}, annotations: {note: text}}
        spec: {profile: p, tenancy: Shared, purposes: [other], kubernetes: {version: 1.33.3}}
`, newCluster("here/only-local", "mcp", shared))
	f.changeCluster("here/only-local", func(c *v1alpha1.Cluster) { c.Labels = map[string]string{"local": "yes"} })
	f.ask("mcp", "foo/one", "foo/two")
	f.wantClusters("here/its-name one two", "here/only-local")
	c := f.cluster("here/its-name")
	want := map[string]string{"global": "yes", "local": "yes", v1alpha1.DeleteWithoutRequestsLabel: "true"}
	if !maps.Equal(c.Labels, want) || !maps.Equal(c.Annotations, map[string]string{"note": "text"}) {
		t.Errorf("%v %v", c.Labels, c.Annotations)
	}
	if !slices.Equal(c.Spec.Purposes, []string{"other", "mcp"}) || c.Spec.Kubernetes.Version != "1.33.3" {
		t.Errorf("%+v", c.Spec)
	}
	// The template is not changed.
	if template := f.config.PurposeMappings["mcp"].Template; len(template.Spec.Purposes) != 1 || len(template.Metadata.Labels) != 2 {
		t.Errorf("%+v", template)
	}
}

func TestScheduler_RecordsEvents(t *testing.T) {
	f := newFixture(t, testConfig)
	f.ask("unlimited", "foo/one")
	f.ask("unknown", "foo/two")
	for _, want := range []string{"Normal ClusterGranted The request has Cluster foo/unlimited",
		"Warning ConfigurationProblem no cluster definition found for purpose 'unknown'"} {
		if len(f.events.Events) == 0 {
			t.Fatalf("no event, want %q", want)
		}
		if got := <-f.events.Events; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestScheduler_ChoosesRandomNamesOnRequest(t *testing.T) {
	f := newFixture(t, testConfig)
	request := newRequest("foo/exclusive", "exclusive")
	request.Labels = map[string]string{v1alpha1.RandomizeClusterNameLabel: "true"}
	f.create(request)
	f.settle("foo/exclusive")
	name := f.request("foo/exclusive").Status.Cluster.Name
	if !strings.HasPrefix(name, "exclusive-") || name == "exclusive-qilq5nsb" {
		t.Errorf("the name is %s", name)
	}
}

func TestScheduler_RecoversLostClusters(t *testing.T) {
	f := newFixture(t, testConfig)
	f.ask("exclusive", "foo/exclusive")
	granted := "Granted foo/exclusive-qilq5nsb ClusterGranted"

	f.change("foo/exclusive", func(r *v1alpha1.ClusterRequest) { r.Status = v1alpha1.ClusterRequestStatus{} })
	f.settle("foo/exclusive")
	f.wantAnswer("foo/exclusive", granted)

	f.changeCluster("foo/exclusive-qilq5nsb", func(c *v1alpha1.Cluster) { c.Finalizers = nil })
	f.settle("foo/exclusive")
	f.wantClusters("foo/exclusive-qilq5nsb exclusive")

	f.changeCluster("foo/exclusive-qilq5nsb", func(c *v1alpha1.Cluster) { c.Finalizers = nil })
	f.delete(f.cluster("foo/exclusive-qilq5nsb"))
	f.wantClusters()
	f.settle("foo/exclusive")
	f.wantClusters("foo/exclusive-qilq5nsb exclusive")
	f.wantAnswer("foo/exclusive", granted)
}

func TestScheduler_PropagatesMetadata(t *testing.T) {
	const key, annotation = v1alpha1.MetadataAnnotationLabelPrefix + "team", v1alpha1.MetadataAnnotationLabelPrefix + "note"
	f := newFixture(t, testConfig)
	tell := func(value string) func(r *v1alpha1.ClusterRequest) {
		return func(r *v1alpha1.ClusterRequest) {
			r.Labels, r.Annotations = map[string]string{key: value, "own": "x"}, map[string]string{annotation: value, "own": "x"}
		}
	}
	for _, purpose := range []string{"exclusive", "unlimited"} {
		request := newRequest("foo/"+purpose, purpose)
		tell("one")(request)
		f.create(request)
		f.settle("foo/" + purpose)
	}
	check := func(cluster, want string) {
		t.Helper()
		c := f.cluster("foo/" + cluster)
		if c.Labels[key] != want || c.Annotations[annotation] != want || c.Labels["own"]+c.Annotations["own"] != "" {
			t.Errorf("%s: %v %v, want %q", cluster, c.Labels, c.Annotations, want)
		}
	}
	check("exclusive-qilq5nsb", "one")
	check("unlimited", "")
	f.change("foo/exclusive", tell("two"))
	f.change("foo/unlimited", tell("two"))
	f.settle("foo/exclusive", "foo/unlimited")
	check("exclusive-qilq5nsb", "two")
	check("unlimited", "")
}
