// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
)

// TestViewedWrites_EqualStoredClusterWrites verifies that writes by the two paths in any order have the same result, managers, errors and
// conflicts as if all of them were writes of the stored cluster.
func TestViewedWrites_EqualStoredClusterWrites(t *testing.T) {
	h := withFleet(t)
	conflicts := 0
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h.t = t
			random := rand.New(rand.NewPCG(seed, 2))
			mixed, plain := fmt.Sprintf("m%d", seed), fmt.Sprintf("p%d", seed)
			h.newCluster(mixed, "mine")
			h.newCluster(plain, "mine")
			for step := range 25 {
				w := randomWrite(random)
				path := storedPath
				if random.IntN(2) == 0 && w.kind != "status" {
					path = viewedPath
				}
				got, want := w.send(h, path, mixed), w.send(h, storedPath, plain)
				what := fmt.Sprintf("step %d, %+v by %s", step, w, path)
				if got.code != want.code || want.code == http.StatusConflict && !slices.Equal(causes(t, got), causes(t, want)) {
					t.Fatalf("%s: %d %s\nwant %d %s", what, got.code, got.body, want.code, want.body)
				}
				if want.code == http.StatusConflict {
					conflicts++
				} else if want.code != http.StatusOK {
					t.Fatalf("%s: %d %s", what, want.code, want.body)
				}
				if is, as := asWritten(t, h.stored(mixed)), asWritten(t, h.stored(plain)); is != as {
					t.Fatalf("%s: stored is\n%s\nwant\n%s", what, is, as)
				}
			}
		})
	}
	if conflicts == 0 {
		t.Error("nothing was a conflict")
	}
}

// asWritten returns what two clusters must have in common after the same writes.
func asWritten(t *testing.T, c v1.ManagedCluster) string {
	managers := managersOf(t, c)
	var fields []string
	for manager, set := range managers {
		fields = append(fields, fmt.Sprintf("%s: %s", manager, set))
	}
	slices.Sort(fields)
	for i := range c.Spec.Taints {
		c.Spec.Taints[i].TimeAdded = metav1.Time{}
	}
	c.Name, c.UID, c.ResourceVersion, c.ManagedFields = "", "", "", nil
	c.CreationTimestamp = metav1.Time{}
	return encoded(t, c) + "\n" + strings.Join(fields, "\n")
}

// wrote is a write of a cluster, independent of its name and path.
type wrote struct {
	kind, manager string
	force         bool
	content       map[string]any
}

func randomWrite(random *rand.Rand) wrote {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	w := wrote{kind: pick("apply", "apply", "apply", "merge", "merge", "put", "status"), manager: pick("a", "b"), force: random.IntN(4) == 0}
	if w.kind == "status" {
		w.manager = pick("a", "agent")
	}
	labels, spec := map[string]any{}, map[string]any{}
	w.content = map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}
	for _, key := range []string{"k", "l", "m"} {
		switch random.IntN(4) {
		case 0:
			labels[key] = nil
			if w.kind != "merge" {
				delete(labels, key)
			}
		case 1, 2:
			labels[key] = pick("1", "2")
		}
	}
	if random.IntN(3) == 0 {
		w.content["metadata"].(map[string]any)["annotations"] = map[string]any{"n": pick("1", "2")}
	}
	if random.IntN(2) == 0 {
		spec["leaseDurationSeconds"] = 60 + random.IntN(2)
	}
	if random.IntN(3) == 0 {
		spec["taints"] = []any{map[string]any{"key": pick("x", "y"), "effect": "NoSelect"}}
	}
	if random.IntN(3) == 0 {
		spec["managedClusterClientConfigs"] = []any{map[string]any{"url": "https://" + pick("a", "b") + ".example"}}
	}
	// A write without the subresource does not change the status, and does not become its manager.
	w.content["status"] = map[string]any{"version": map[string]any{"kubernetes": pick("v1.37.1", "v1.37.2")}}
	return w
}

// send sends it to the cluster of that name by a path.
func (w wrote) send(h *viewedHub, path, name string) answer {
	url, version := fmt.Sprintf("%s/%s?fieldManager=%s", path, name, w.manager), v1.SchemeGroupVersion.String()
	if path == viewedPath {
		version = clusterviewv1.SchemeGroupVersion.String()
	}
	switch w.kind {
	case "status":
		return h.do("root", http.MethodPatch, strings.Replace(url, "?", "/status?", 1), mergeType, encoded(h.t, w.content))
	case "merge":
		return h.do("root", http.MethodPatch, url, mergeType, encoded(h.t, w.content))
	case "put":
		read := h.must("root", http.MethodGet, path+"/"+name, "", "").cluster
		read.Spec.Taints = nil // they have the time when they were added
		if err := json.Unmarshal([]byte(encoded(h.t, w.content)), &read); err != nil {
			h.t.Fatal(err)
		}
		return h.do("root", http.MethodPut, url, "application/json", encoded(h.t, read))
	}
	content := map[string]any{"apiVersion": version, "kind": "ManagedCluster"}
	for key, value := range w.content {
		content[key] = value
	}
	return h.do("root", http.MethodPatch, fmt.Sprintf("%s&force=%t", url, w.force), applyType, encoded(h.t, content))
}
