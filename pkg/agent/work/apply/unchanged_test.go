// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

// judged is the verdict on applying a manifest to an object: skipped is the agent's, which sends no request, and changes is the server's, by a dry
// run.
type judged struct{ skipped, changes bool }

// judge returns both. The server compares managedFields, too, with their times.
func (w *world) judge(a *Applier, m Manifest) judged {
	w.Helper()
	x := &write{Applier: a, Manifest: m, have: w.get(m.Target), resource: w.client.Resource(m.GroupVersionResource).Namespace(m.Namespace)}
	next := x.desired()
	dropNulls(next.Object)
	manager := m.Strategy.Manager
	if manager == "" {
		manager = DefaultManager
	}
	skipped := x.isApplied(next, manager)
	_, former := x.formerEntries(manager)
	next.SetResourceVersion(x.have.GetResourceVersion())
	would, err := x.resource.Apply(w.Context(), m.Name, next, metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}})
	return judged{skipped, err != nil || len(former) > 0 || !reflect.DeepEqual(would.Object, x.have.Object)}
}

// as changes an object as another client, by a merge patch or an apply patch.
func (w *world) as(manager string, t Target, how types.PatchType, text string, subresource ...string) {
	w.Helper()
	patch, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		w.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: manager}
	if how == types.ApplyPatchType {
		options.Force = new(true)
	}
	if _, err := w.client.Resource(t.GroupVersionResource).Namespace(t.Namespace).Patch(w.Context(), t.Name, how, patch, options, subresource...); err != nil {
		w.Fatalf("%s: %v", text, err)
	}
}

const shape = `
type: object
properties:
  status: {type: object, properties: {seen: {type: string}}}
  spec:
    type: object
    properties:
      text: {type: string}
      defaulted: {type: string, default: by the schema}
      box: {type: object, properties: {size: {type: string, default: small}}}
      number: {type: integer, format: int64}
      ratio: {type: number}
      either: {x-kubernetes-int-or-string: true}
      labels: {type: object, additionalProperties: {type: string}}
      named: {type: object, additionalProperties: {type: object, properties: {a: {type: string}, b: {type: string}}}}
      atomic: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
      nothing: {type: string, nullable: true}
      list: {type: array, items: {type: string}}
      set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      items:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          properties: {name: {type: string}, value: {type: string}, size: {type: string, default: small}, set: {type: array, x-kubernetes-list-type: set, items: {type: string}}}
      ports:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [port, protocol]
        items: {type: object, required: [port], properties: {port: {type: integer}, protocol: {type: string, default: TCP}, name: {type: string}}}
      any: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// things serves a kind that has all that a schema can define about merging, in two versions.
func (w *world) things() schema.GroupVersionResource {
	w.Helper()
	group := w.namespace + ".example.com"
	crd := worktest.Parse(fmt.Sprintf("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.%s}, spec: {group: %[1]s, scope: Namespaced, "+
		"names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true}, {name: v2, served: true, storage: false}]}}", group))
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		v.(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": worktest.Parse(shape).Object}
		v.(map[string]any)["subresources"] = map[string]any{"status": map[string]any{}}
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
	crds := w.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(w.Context(), crd, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = crds.Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{}) })
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}
	for _, version := range []string{"v1", "v2"} {
		worktest.Eventually(w.T, version+" is served", func() bool {
			_, err := w.client.Resource(resource.GroupResource().WithVersion(version)).Namespace(w.namespace).List(w.Context(), metav1.ListOptions{})
			return err == nil
		})
	}
	return resource
}

func (w *world) thing(resource schema.GroupVersionResource, text string) Manifest {
	m := w.manifest(resource, UpdateStrategy{}, "{kind: Thing, metadata: {name: x}, "+text+"}")
	m.Object.SetAPIVersion(resource.GroupVersion().String())
	return m
}

// TestUnchanged_ServerResponses: no write is skipped that would change anything, and common ones without a change are skipped.
func TestUnchanged_ServerResponses(t *testing.T) {
	w := newWorld(t)
	resource := w.things()
	type other struct {
		manager string
		how     types.PatchType
		patch   string
	}
	merge := func(patch string) []other { return []other{{"somebody", types.MergePatchType, patch}} }
	applies := func(patch string) []other { return []other{{"somebody", types.ApplyPatchType, patch}} }
	all := "spec: {text: t, number: 9007199254740993, ratio: 0.1, either: 1, labels: {a: '1'}, named: {x: {a: '1'}, z: {}}, atomic: {a: '1'}, list: [a, a], set: [b, a], " +
		"items: [{name: b, value: v, set: [x]}, {name: a}], ports: [{port: 1, protocol: UDP}, {port: 1, protocol: TCP}], any: {num: 9007199254740993, m: {l: [{a: 1}]}}}"
	for name, row := range map[string]struct {
		first, second string // the second is the first if it is empty
		others        []other
		skips         bool
	}{
		"all that a schema can say":                     {first: all, skips: true},
		"metadata":                                      {first: "metadata: {name: x, labels: {a: b}, annotations: {c: d}, finalizers: [example.com/x]}", skips: true},
		"nothing":                                       {first: "spec: {}"},
		"the status changes":                            {first: all, others: []other{{"somebody", "status", "{status: {seen: now}}"}}, skips: true},
		"others set other fields":                       {first: all, others: merge("{metadata: {labels: {x: z}}, spec: {defaulted: by somebody, labels: {b: '2'}}}"), skips: true},
		"others apply other items":                      {first: all, others: applies("{spec: {set: [c], items: [{name: c}], ports: [{port: 2}]}}"), skips: true},
		"others apply the same":                         {first: all, others: applies("{spec: {text: t, labels: {a: '1'}, items: [{name: b, value: v}]}}"), skips: true},
		"others set a field":                            {first: all, others: merge("{spec: {text: u}}")},
		"others set a large number":                     {first: all, others: merge("{spec: {number: 9007199254740992}}")},
		"others set a field back":                       {first: all, others: append(merge("{spec: {text: u}}"), merge("{spec: {text: t}}")...)},
		"others remove a field":                         {first: all, others: merge("{spec: {text: null}}")},
		"others set a field below a map without schema": {first: all, others: merge("{spec: {any: {num: 9007199254740992}}}")},
		"others add to an atomic map":                   {first: all, others: merge("{spec: {atomic: {b: '2'}}}")},
		"others add to a list":                          {first: all, others: merge("{spec: {list: [a, a, b]}}")},
		"others order a set":                            {first: all, others: merge("{spec: {set: [a, b]}}")},
		"others order items":                            {first: all, others: merge("{spec: {items: [{name: a}, {name: b, value: v, set: [x]}]}}")},
		"others set a default of ours":                  {first: "spec: {defaulted: by the manifest}", others: merge("{spec: {defaulted: null}}")},
		"a field of ours that equals the default":       {first: "spec: {defaulted: by the schema}", skips: true},
		"our own update":                                {first: all, others: []other{{DefaultManager, types.MergePatchType, "{spec: {labels: {c: '3'}}}"}}},
		"an update of another name of works":            {first: all, others: []other{{DefaultManager + "-x", types.MergePatchType, "{spec: {labels: {c: '3'}}}"}}},
		"managedFields are gone":                        {first: all, others: merge("{metadata: {managedFields: [{}]}}")},
		"no owner reference":                            {first: all, others: merge("{metadata: {ownerReferences: null}}")},
		"a label of ours is gone":                       {first: "metadata: {name: x, labels: {a: b}}", others: merge("{metadata: {labels: null}}")},

		"a field is added":                  {first: "spec: {text: t}", second: "spec: {text: t, number: 1}"},
		"a field of others is added":        {first: "spec: {text: t}", second: "spec: {text: t, number: 1}", others: merge("{spec: {number: 1}}")},
		"a default is added":                {first: "spec: {text: t}", second: "spec: {text: t, defaulted: by the schema}"},
		"a field is removed":                {first: "spec: {text: t, number: 1}", second: "spec: {text: t}"},
		"a label is removed":                {first: "metadata: {name: x, labels: {a: b, c: d}}", second: "metadata: {name: x, labels: {a: b}}"},
		"an item is removed":                {first: "spec: {items: [{name: a}, {name: b}]}", second: "spec: {items: [{name: a}]}"},
		"a field of an item is removed":     {first: "spec: {items: [{name: a, value: v}]}", second: "spec: {items: [{name: a}]}"},
		"items are ordered":                 {first: "spec: {items: [{name: a}, {name: b}]}", second: "spec: {items: [{name: b}, {name: a}]}"},
		"an item is doubled":                {first: "spec: {items: [{name: a}, {name: b}]}", second: "spec: {items: [{name: a}, {name: a}]}"},
		"a value of a set is doubled":       {first: "spec: {set: [a, b]}", second: "spec: {set: [a, a]}"},
		"a number becomes another":          {first: "spec: {number: 9007199254740993}", second: "spec: {number: 9007199254740992}"},
		"an integer becomes a float":        {first: "spec: {ratio: 1}", second: "spec: {ratio: 1.5}"},
		"a number becomes text":             {first: "spec: {either: 1}", second: "spec: {either: '1'}"},
		"an empty map becomes another":      {first: "spec: {labels: {}}", second: "spec: {labels: {a: '1'}}", others: merge("{spec: {labels: {a: '1'}}}")},
		"an empty map gets a default":       {first: "spec: {text: t, box: {}}", second: "spec: {text: t, box: {size: small}}"},
		"an empty map gets what is default": {first: "spec: {text: t, items: [{name: a}]}", second: "spec: {text: t, items: [{name: a, size: small}]}"},
		"an empty map without schema":       {first: "spec: {any: {m: {}}}", second: "spec: {any: {m: {a: 1}}}", others: merge("{spec: {any: {m: {a: 1}}}}")},
		"a map becomes empty":               {first: "spec: {labels: {a: '1'}}", second: "spec: {labels: {}}"},
		"an atomic map becomes empty":       {first: "spec: {atomic: {a: '1'}}", second: "spec: {atomic: {}}"},
		"empty maps stay":                   {first: "spec: {labels: {}, atomic: {}, named: {x: {}}, any: {m: {}}}", skips: true},
		"an empty map with others' fields":  {first: "spec: {labels: {}}", others: merge("{spec: {labels: {a: '1'}}}")},
		"empty lists":                       {first: "spec: {list: [], set: [], items: []}"},
		"a null":                            {first: "spec: {nothing: null}"},
		"a null in a list":                  {first: "spec: {any: {m: [null]}}", skips: true},
		"a null that is a value now":        {first: "spec: {nothing: null}", second: "spec: {nothing: v}", others: merge("{spec: {nothing: v}}")},
		"with a status":                     {first: "spec: {text: t}, status: {seen: never}"},
		"times that are null":               {first: "metadata: {name: x, creationTimestamp: null}, spec: {text: t}", skips: true},
		"the key of an item by default":     {first: "spec: {ports: [{port: 1}]}"},
		"an unknown field":                  {first: "spec: {text: t}", second: "spec: {text: t, unknown: field}"},
		"another version":                   {first: "spec: {text: t}", second: "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, client: w.client, namespace: worktest.Namespace(t)}
			a, m := w.work("a"), w.thing(resource, row.first)
			w.apply(a, m)
			for _, o := range row.others {
				switch o.how {
				case types.ApplyPatchType:
					w.as(o.manager, m.Target, o.how, fmt.Sprintf("{apiVersion: %s, kind: Thing, %s", resource.GroupVersion(), strings.TrimPrefix(o.patch, "{")))
				case "status":
					w.as(o.manager, m.Target, types.MergePatchType, o.patch, "status")
				default:
					w.as(o.manager, m.Target, o.how, o.patch)
				}
			}
			m.Reported = row.second == ""
			if row.second == "v2" {
				m = w.thing(resource.GroupResource().WithVersion("v2"), row.first)
			} else if row.second != "" {
				m = w.thing(resource, row.second)
			}
			got := w.judge(a, m)
			if got.skipped && got.changes {
				t.Errorf("it is left out, and the server would change something: %v", w.get(m.Target).Object)
			}
			if got.skipped != row.skips {
				t.Errorf("it is left out: %t, want %t (the server would change something: %t)", got.skipped, row.skips, got.changes)
			}
		})
	}
}

// TestUnchanged_OfKubernetes has manifests of kinds whose schema is Kubernetes' own.
func TestUnchanged_OfKubernetes(t *testing.T) {
	of := func(group, version, name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
	}
	for name, row := range map[string]struct {
		resource schema.GroupVersionResource
		manifest string
		skips    bool
	}{
		"ConfigMap": {configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}, binaryData: {c: Yg==}}", true},
		"Secret":    {core.WithResource("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {a: b}}", true},
		"Deployment": {deployments, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, labels: {app: d}}, spec: {replicas: 2, selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, " +
			"spec: {serviceAccountName: s, containers: [{name: c, image: i, args: [a, a], ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}], env: [{name: A, value: a}, " +
			"{name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}], resources: {limits: {cpu: 100m, memory: 64Mi}}, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, configMap: {name: x}}]}}}}", true},
		"quantities in another notation": {deployments, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, " +
			"spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 0.1, memory: 1024Mi}}}]}}}}", false},
		"Service":                {core.WithResource("services"), "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {selector: {app: d}, ports: [{port: 80}]}}", true},
		"Service with two ports": {core.WithResource("services"), "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {selector: {app: d}, ports: [{name: h, port: 80}, {name: s, port: 443, targetPort: https}]}}", true},
		"Role":                   {of("rbac.authorization.k8s.io", "v1", "roles"), "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}", true},
		"RoleBinding": {of("rbac.authorization.k8s.io", "v1", "rolebindings"), "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, " +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}, subjects: [{kind: ServiceAccount, name: s, namespace: other}]}", true},
		"ServiceAccount": {core.WithResource("serviceaccounts"), "{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}, imagePullSecrets: [{name: s}]}", true},
		"Job":            {of("batch", "v1", "jobs"), "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [a]}]}}}}", true},
		"HorizontalPodAutoscaler": {of("autoscaling", "v2", "horizontalpodautoscalers"), "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, spec: {maxReplicas: 3, " +
			"scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}", true},
		"NetworkPolicy": {of("networking.k8s.io", "v1", "networkpolicies"), "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x}, spec: {podSelector: {}, policyTypes: [Ingress]}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, m := w.work("a"), w.manifest(row.resource, UpdateStrategy{}, row.manifest)
			w.apply(a, m)
			m.Reported = true
			if got := w.judge(a, m); got.skipped != row.skips || got.skipped && got.changes {
				t.Errorf("it is left out: %t, want %t; the server would change something: %t", got.skipped, row.skips, got.changes)
			}
		})
	}
}
