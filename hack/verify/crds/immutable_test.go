// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var (
	mode    = []string{"spec", "deployOption", "mode"}
	another = "delete the Klusterlet and make a new one"
)

// TestImmutable_OnEveryWrite: what cannot change does not, however it is written, and also not by leaving it out.
func TestImmutable_OnEveryWrite(t *testing.T) {
	client := server(t)
	at := func(path ...string) []string { return append([]string{"spec"}, path...) }
	etcd := func(path ...string) []string { return append([]string{"spec", "clusterhub", "etcd"}, path...) }
	const external = `{clusterhub: {etcd: {type: External, external: {servers: ["https://etcd:2379"]}}}}`
	volume := func(fields string) string { return `{clusterhub: {etcd: {embedded: {` + fields + `}}}}` }
	for name, c := range map[string]struct {
		resource, spec string
		path           []string
		value          any
		want           string
	}{
		"mode to another":                    {klusterlets, `{deployOption: {mode: Detached}}`, mode, "Hosted", another},
		"mode to the default":                {klusterlets, `{deployOption: {mode: Detached}}`, mode, "Default", another},
		"mode to none":                       {klusterlets, `{deployOption: {mode: Hosted}}`, mode, "", another},
		"mode left out":                      {klusterlets, `{deployOption: {mode: Detached}}`, mode, nil, another},
		"options left out":                   {klusterlets, `{deployOption: {mode: Singleton}}`, at("deployOption"), nil, another},
		"spec left out":                      {klusterlets, `{deployOption: {mode: SingletonHosted}}`, at(), nil, another},
		"mode from the default":              {klusterlets, `{clusterName: c}`, mode, "Detached", another},
		"mode from one that is written out":  {klusterlets, `{deployOption: {mode: Default}}`, mode, "Singleton", another},
		"mode from none":                     {klusterlets, `{deployOption: {mode: ""}}`, mode, "Detached", another},
		"mode that stays":                    {klusterlets, `{deployOption: {mode: Detached}}`, mode, "Detached", ""},
		"default left out":                   {klusterlets, `{deployOption: {mode: Default}}`, mode, nil, ""},
		"default to none":                    {klusterlets, `{deployOption: {mode: Default}}`, mode, "", ""},
		"none to the default":                {klusterlets, `{deployOption: {mode: ""}}`, mode, "Default", ""},
		"hub's mode to another":              {clusterManagers, `{deployOption: {mode: Detached}}`, mode, "Hosted", "delete the ClusterManager and make a new one"},
		"hub's mode left out":                {clusterManagers, `{deployOption: {mode: Detached}}`, mode, nil, "delete the ClusterManager and make a new one"},
		"hub's options left out":             {clusterManagers, `{deployOption: {mode: Hosted}}`, at("deployOption"), nil, "delete the ClusterManager and make a new one"},
		"hub's spec left out":                {clusterManagers, `{deployOption: {mode: Hosted}}`, at(), nil, "delete the ClusterManager and make a new one"},
		"hub's mode from the default":        {clusterManagers, `{workImagePullSpec: x}`, mode, "Detached", "delete the ClusterManager and make a new one"},
		"hub's default left out":             {clusterManagers, `{deployOption: {mode: Default}}`, mode, nil, ""},
		"name of the cluster changed":        {klusterlets, `{clusterName: a}`, at("clusterName"), "b", "clusterName cannot be changed or removed"},
		"name of the cluster removed":        {klusterlets, `{clusterName: a}`, at("clusterName"), nil, "clusterName cannot be changed or removed"},
		"name of the cluster set later":      {klusterlets, `{namespace: open-cluster-management-x}`, at("clusterName"), "b", ""},
		"namespace changed":                  {klusterlets, `{namespace: open-cluster-management-x}`, at("namespace"), "open-cluster-management-y", "namespace cannot be changed"},
		"namespace removed":                  {klusterlets, `{namespace: open-cluster-management-x}`, at("namespace"), nil, "namespace cannot be changed"},
		"namespace set later":                {klusterlets, `{clusterName: a}`, at("namespace"), "open-cluster-management-x", "namespace cannot be changed"},
		"namespace to the default":           {klusterlets, `{clusterName: a}`, at("namespace"), "open-cluster-management-agent", ""},
		"namespace from the default":         {klusterlets, `{namespace: open-cluster-management-agent}`, at("namespace"), nil, ""},
		"etcd to an external one":            {clusterManagers, `{}`, etcd(), map[string]any{"type": "External", "external": map[string]any{"servers": []any{"https://e"}}}, "make a new ClusterManager"},
		"etcd to the embedded one":           {clusterManagers, external, etcd(), map[string]any{"type": "Embedded"}, "make a new ClusterManager"},
		"etcd left out":                      {clusterManagers, external, etcd(), nil, "make a new ClusterManager"},
		"all of ours left out":               {clusterManagers, external, at("clusterhub"), nil, "make a new ClusterManager"},
		"etcd at other servers":              {clusterManagers, external, etcd("external", "servers"), []any{"https://other"}, ""},
		"volume that shrinks":                {clusterManagers, volume(`size: 20Gi`), etcd("embedded", "size"), "19Gi", "a volume cannot shrink"},
		"volume that shrinks to the default": {clusterManagers, volume(`size: 20Gi`), etcd("embedded"), nil, "a volume cannot shrink"},
		"volume that shrinks from it":        {clusterManagers, `{}`, etcd("embedded"), map[string]any{"size": "5Gi"}, "a volume cannot shrink"},
		"volume that grows":                  {clusterManagers, volume(`size: 20Gi`), etcd("embedded", "size"), "21474836481", ""},
		"class of the volume":                {clusterManagers, volume(`storageClassName: a`), etcd("embedded", "storageClassName"), "b", "storageClassName cannot be changed"},
		"class of the volume left out":       {clusterManagers, volume(`storageClassName: a`), etcd("embedded"), nil, "storageClassName cannot be changed"},
		"image of the hub":                   {clusterManagers, `{clusterhub: {apiServer: {image: a}}}`, at("clusterhub", "apiServer", "image"), "b", ""},
		"rights of works":                    {klusterlets, `{clusterhub: {works: {role: admin}}}`, at("clusterhub", "works", "role"), "cluster-admin", ""},
	} {
		t.Run(name, func(t *testing.T) {
			eachWrite(t, client, change{resource: c.resource, spec: c.spec, path: c.path, value: c.value}, c.want)
		})
	}
}

// TestClusterName_MatchesRegistration: a cluster that has registered itself without one can be given its own name only.
func TestClusterName_MatchesRegistration(t *testing.T) {
	client := server(t)
	for _, c := range []struct{ spec, registered, set, want string }{
		{`{}`, "own", "other", "status.clusterhub.clusterName"},
		{`{}`, "own", "own", ""},
		{`{}`, "", "any", ""},
		// Both were written at once: the way back is open.
		{`{clusterName: other}`, "own", "own", ""},
		{`{clusterName: other}`, "own", "third", "status.clusterhub.clusterName"},
		{`{clusterName: own}`, "own", "", "cannot be changed or removed"},
		{`{clusterName: other}`, "own", "other", ""},
	} {
		t.Run(c.spec+" to "+c.set, func(t *testing.T) {
			k := change{client: client, resource: klusterlets, name: "named"}
			applied(t, client, klusterlets, "named", c.spec)
			status := map[string]any{"status": map[string]any{"clusterhub": map[string]any{"clusterName": c.registered}}}
			if err := k.patch(t, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			k.path, k.value = []string{"spec", "clusterName"}, any(c.set)
			if c.set == "" {
				k.value = nil
			}
			refused(t, writes["merge patch"](t, k), c.want)
		})
	}
}

// TestStatus_CannotChangeSpec: who may write a status may not move an agent.
func TestStatus_CannotChangeSpec(t *testing.T) {
	client := server(t)
	applied(t, client, klusterlets, "still", `{deployOption: {mode: Detached}, clusterName: c}`)
	k := change{client: client, resource: klusterlets, name: "still", path: mode, value: "Default"}
	for how, write := range map[string]func(*testing.T) error{
		"PUT": func(t *testing.T) error {
			o, err := of(client, klusterlets).Get(t.Context(), k.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if err := unstructured.SetNestedField(o.Object, "Default", mode...); err != nil {
				return err
			}
			_, err = of(client, klusterlets).UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
			return err
		},
		"JSON patch": func(t *testing.T) error {
			return k.patch(t, types.JSONPatchType, []any{map[string]any{"op": "replace", "path": "/spec/deployOption/mode", "value": "Default"}}, metav1.PatchOptions{}, "status")
		},
		"merge patch": func(t *testing.T) error {
			return k.patch(t, types.MergePatchType, k.nested(), metav1.PatchOptions{}, "status")
		},
		"apply": func(t *testing.T) error {
			o := object(t, klusterlets, k.name, `{deployOption: {mode: Default}}`)
			_, err := of(client, klusterlets).ApplyStatus(t.Context(), k.name, o, metav1.ApplyOptions{FieldManager: "another", Force: true})
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			refused(t, write(t), "")
			o, err := of(client, klusterlets).Get(t.Context(), k.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := unstructured.NestedString(o.Object, mode...); got != "Detached" {
				t.Errorf("by its status the mode became %q", got)
			}
		})
	}
	// The other way round: who may write the object may not say what the operator has done.
	if err := k.patch(t, types.MergePatchType, map[string]any{"status": map[string]any{"observedGeneration": 7}}, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := of(client, klusterlets).Get(t.Context(), k.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status, found := o.Object["status"].(map[string]any); found && slices.Contains([]any{int64(7)}, status["observedGeneration"]) {
		t.Error("a write of the object changed its status")
	}
}
