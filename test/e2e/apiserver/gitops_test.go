// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// ways are the ways in which tools apply files to a hub.
var ways = map[string][]string{
	"kubectl apply":     nil,
	"server-side apply": {"--server-side", "--field-manager=git"},
}

// notWritten lists kinds that only the hub writes: their names and owners are derived from existing objects.
var notWritten = []string{"EdgePlacement", "ManifestWorkReplicaSetRevision"}

// TestGitOps_ReadsEqualWrites verifies that objects are read as they were written, field by field, and that a second apply shows no
// difference: by a dry run of the server, as GitOps tools use it, and by the generation, after the hub has written its fields.
func TestGitOps_ReadsEqualWrites(t *testing.T) {
	t.Parallel()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			file := gitFile(t)
			objects := documents(t, file)
			wantEveryKind(t, objects)
			apply := append([]string{"apply", "-f", "-"}, way...)
			harness.MustKubectl(t, file, apply...)
			live := readObjects(t, file)
			if len(live) != len(objects) {
				t.Fatalf("there are %d objects of %d", len(live), len(objects))
			}
			for i := range objects {
				for _, difference := range differences(objects[i], live[i], idOf(objects[i])) {
					t.Error(difference)
				}
			}
			hubTaint(t, idOf(objects[0]).name)
			harness.Eventually(t, "no difference", func(context.Context) (bool, error) {
				out, err := harness.Kubectl(t, file, append([]string{"diff", "-f", "-"}, way...)...)
				return harness.Holds(err == nil, out)
			})
			before := readObjects(t, file)
			harness.MustKubectl(t, file, apply...)
			for i, after := range readObjects(t, file) {
				if was, is := at(before[i], "metadata", "generation"), at(after, "metadata", "generation"); was != is {
					t.Errorf("%s: the generation was %v, and is %v after the same file was applied again", idOf(after), was, is)
				}
			}
		})
	}
}

// TestGitOps_TaintsOfGitAndHub verifies that taints in Git and taints of the hub are in one list with separate owners: none resets timeAdded of
// the other.
func TestGitOps_TaintsOfGitAndHub(t *testing.T) {
	t.Parallel()
	const file = `
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: NAME}
spec:
  hubAcceptsClient: true
  taints: [{key: gpu, value: "true", effect: NoSelect}]
`
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			cluster := harness.Unique("taints")
			git := strings.ReplaceAll(file, "NAME", cluster)
			apply := func(file string) *clusterv1.ManagedCluster {
				harness.MustKubectl(t, file, append([]string{"apply", "-f", "-"}, way...)...)
				return harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), cluster, metav1.GetOptions{}))(t)
			}
			harness.NewManagedCluster(t, cluster, nil)
			apply(git)
			before := hubTaint(t, cluster)
			again := apply(git)
			if again.Generation != before.Generation || !slices.Equal(again.Spec.Taints, before.Spec.Taints) {
				t.Errorf("the same file again makes %+v of %+v", again.Spec, before.Spec)
			}
			ofHub := func(c *clusterv1.ManagedCluster) string {
				i := slices.IndexFunc(c.Spec.Taints, func(t clusterv1.Taint) bool { return t.Key == registration.TaintUnreachable })
				if i < 0 {
					return "none"
				}
				return c.Spec.Taints[i].TimeAdded.String()
			}
			changed := apply(strings.Replace(git, `"true"`, `"false"`, 1))
			if !slices.ContainsFunc(changed.Spec.Taints, func(t clusterv1.Taint) bool { return t.Key == "gpu" && t.Value == "false" }) ||
				len(changed.Spec.Taints) != 2 || ofHub(changed) != ofHub(before) {
				t.Errorf("another value makes %+v of %+v", changed.Spec.Taints, before.Spec.Taints)
			}
			effect := apply(strings.Replace(git, "NoSelect}", "NoSelectIfNew}", 1))
			if len(effect.Spec.Taints) != 2 || ofHub(effect) != ofHub(before) {
				t.Errorf("another effect makes %+v of %+v", effect.Spec.Taints, before.Spec.Taints)
			}
			removed := apply(strings.Replace(git, `{key: gpu, value: "true", effect: NoSelect}`, "", 1))
			if len(removed.Spec.Taints) != 1 || ofHub(removed) != ofHub(before) {
				t.Errorf("no taint in Git makes %+v of %+v", removed.Spec.Taints, before.Spec.Taints)
			}
		})
	}
}

// gitFile returns the file with names of this test.
func gitFile(t *testing.T) string {
	t.Helper()
	name := harness.NewNamespace(t)
	data := string(harness.Must(os.ReadFile("testdata/gitops.yaml"))(t))
	file := strings.NewReplacer("NAME", name, "ARCHIVE", serviceArchive(t)).Replace(data)
	t.Cleanup(func() {
		cmd := harness.Hub(t).Kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found", "--wait=false", "-f", "-")
		cmd.Stdin = strings.NewReader(file)
		_ = cmd.Run()
	})
	return file
}

func serviceArchive(t *testing.T) string {
	t.Helper()
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	entries := tar.NewWriter(zipped)
	if err := entries.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "web.yaml", Mode: 0o644, Size: int64(len(manifest))}); err != nil {
		t.Fatal(err)
	}
	_, err := entries.Write([]byte(manifest))
	if err := errors.Join(err, entries.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(data.Bytes())
}

// wantEveryKind fails the test for a writable kind and version that the file lacks.
func wantEveryKind(t *testing.T, objects []map[string]any) {
	t.Helper()
	written := map[string]bool{}
	for _, o := range objects {
		written[fmt.Sprint(o["apiVersion"], " ", o["kind"])] = true
	}
	_, lists, err := harness.Admin(t).Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		group := harness.Must(schema.ParseGroupVersion(list.GroupVersion))(t).Group
		if !strings.HasSuffix(group, ".open-cluster-management.io") && !strings.HasSuffix(group, ".clusterhub.dev") && !strings.HasSuffix(group, ".openmcp.cloud") {
			continue
		}
		for _, r := range list.APIResources {
			byPeople := slices.Contains(r.Verbs, "create") && slices.Contains(r.Verbs, "patch") && !strings.Contains(r.Name, "/") && !slices.Contains(notWritten, r.Kind)
			if byPeople && !written[list.GroupVersion+" "+r.Kind] {
				t.Errorf("testdata/gitops.yaml has no %s of %s", r.Kind, list.GroupVersion)
			}
		}
	}
}

// hubTaint adds the hub's taint as the cluster availability controller does, which does not run on this hub.
func hubTaint(t *testing.T, cluster string) *clusterv1.ManagedCluster {
	t.Helper()
	clusters := harness.Admin(t).ClusterV1().ManagedClusters()
	read := harness.Must(clusters.Get(t.Context(), cluster, metav1.GetOptions{}))(t)
	taints := append(read.Spec.Taints, clusterv1.Taint{Key: registration.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect})
	patch := harness.Must(json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": read.ResourceVersion}, "spec": map[string]any{"taints": taints}}))(t)
	return harness.Must(clusters.Patch(t.Context(), cluster, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "hub-controller-manager"}))(t)
}

type id struct{ kind, namespace, name string }

func (i id) String() string { return strings.Trim(i.kind+" "+i.namespace+"/"+i.name, "/") }

func idOf(object map[string]any) id {
	text := func(value any) string { s, _ := value.(string); return s }
	return id{text(object["apiVersion"]) + " " + text(object["kind"]), text(at(object, "metadata", "namespace")), text(at(object, "metadata", "name"))}
}

func at(value any, path ...string) any {
	for _, key := range path {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	return value
}

// documents returns the objects of a file, with numbers as they are written.
func documents(t *testing.T, file string) (objects []map[string]any) {
	t.Helper()
	for _, document := range strings.Split(file, "\n---\n") {
		objects = append(objects, decoded(t, harness.Must(yaml.YAMLToJSON([]byte(document)))(t)))
	}
	return objects
}

func decoded(t *testing.T, data []byte) (object map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return object
}

// readObjects returns the objects of a file as the hub serves them.
func readObjects(t *testing.T, file string) (objects []map[string]any) {
	t.Helper()
	cmd := harness.Hub(t).Kubectl(t.Context(), "get", "-f", "-", "-o", "json")
	cmd.Stdin = strings.NewReader(file)
	for _, item := range decoded(t, harness.Must(cmd.Output())(t))["items"].([]any) {
		objects = append(objects, item.(map[string]any))
	}
	return objects
}

// differences returns the fields that are not read as they were written. Lists have the written items, in any order; the taints of a cluster may have
// more.
func differences(written, read any, path fmt.Stringer) (found []string) {
	return compare(written, read, path.String()+":")
}

func compare(written, read any, path string) (found []string) {
	switch w := written.(type) {
	case map[string]any:
		r, ok := read.(map[string]any)
		if !ok && len(w) > 0 {
			return []string{fmt.Sprintf("%s was %v, and is %v", path, written, read)}
		}
		for key, value := range w {
			found = append(found, compare(value, r[key], path+"."+key)...)
		}
	case []any:
		r, _ := read.([]any)
		if len(r) != len(w) && !strings.HasSuffix(path, ".spec.taints") {
			return []string{fmt.Sprintf("%s was %v, and is %v", path, written, read)}
		}
		for i, value := range w {
			if !slices.ContainsFunc(r, func(item any) bool { return len(compare(value, item, "")) == 0 }) {
				found = append(found, fmt.Sprintf("%s[%d] was %v, and the list is %v", path, i, value, r))
			}
		}
	default:
		if written != read {
			return []string{fmt.Sprintf("%s was %v, and is %v", path, written, read)}
		}
	}
	return found
}
