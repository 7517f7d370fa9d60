// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// upstreamCases are the end-to-end cases about works of Open Cluster Management v1.2.0, under the names that they have in work_workload_test.go,
// work_webhook_test.go and manifestworkreplicaset_test.go of its test/e2e. Each asserts what the case of the same name asserts.
var upstreamCases = []struct {
	name string
	run  func(*upstreamCase)
}{
	{"Work CRUD/Should create, update and delete manifestwork successfully", createUpdateDelete},
	{"With Job/Should create, delete job in manifestwork successfully", job},
	{"With CRD and CR/should create crd and cr with aggregated cluster role successfully", customResource},
	{"ManifestWork status feedback/should return wellkown status of deployment", feedback},
	{"Multiple owner references deletion/Should keep the resource when there are other appliedManifestWork owners", ownersThatAreWorks},
	{"Multiple owner references deletion/Should delete the resource even if there are other non-appliedManifestWork owners", ownersThatAreNone},
	{"CleanUpCompletedManifestWork feature/Should cleanup manifestwork with TTL after job completion", timeToLive},
	{"ManifestWork server side apply/should ignore fields with certain field", ignoredFields},
	{"Creating a manifestwork/Should respond bad request when creating a manifestwork with no manifests", func(c *upstreamCase) {
		c.refused("create", c.workOf())
	}},
	{"Creating a manifestwork/Should respond bad request when creating a manifest with no name", func(c *upstreamCase) {
		c.refused("create", c.workOf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default}}`))
	}},
	{"Creating a manifestwork/Should respond bad request when creating a manifestwork with duplicate manifests", func(c *upstreamCase) {
		c.refused("create", c.workOf(c.configMap("cm1", "{}"), c.configMap("cm1", "{}")))
	}},
	{"Creating a manifestwork/executor/Should respond bad request when no permission for nil executor", nilExecutor},
	{"Updating a manifestwork/Should respond bad request when a manifestwork with invalid manifests", func(c *upstreamCase) {
		c.write("create", c.workOf(c.configMap("cm1", "{}")))
		c.refused("replace", c.workOf(c.configMap("cm1", "{}"), `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default}}`))
	}},
	{"Updating a manifestwork/Should respond bad request when the size of manifests is more than the limit", func(c *upstreamCase) {
		c.write("create", c.workOf(c.configMap("cm1", "{}")))
		manifests := []string{c.configMap("cm1", "{}")}
		for i := range 5 {
			manifests = append(manifests, c.configMap(fmt.Sprint("large", i), "{k: "+strings.Repeat("x", 100<<10)+"}"))
		}
		c.refused("replace", c.workOf(manifests...))
	}},
	{"Creating a ManifestWorkReplicaSet and check created resources/Should create ManifestWorkReplicaSet successfully", replicaSet},
	{"Creating a ManifestWorkReplicaSet across multiple clusters/Create ManifestWorkReplicaSet and check the created manifestWorks", replicaSetOfSeveral},
	{"Creating a ManifestWorkReplicaSet across multiple clusters/delete ManifestWorkReplicaSet Foreground", replicaSetForeground},
}

// TestUpstreamCases runs the cases with our agent, our controllers and a plain cluster, whose only kubelet is kwok. The feature gate is enabled,
// without which upstream skips one of the cases.
func TestUpstreamCases(t *testing.T) {
	const gate = "--feature-gates=NilExecutorValidating=true"
	d := newDelivery(t, controlled(t, func(c *localhub.Options) {
		c.HubAPIServerArgs, c.HubControllerManagerArgs = append(c.HubAPIServerArgs, gate), append(c.HubControllerManagerArgs, gate)
	}), 1)
	m := d.clusters[0]
	m.kubelet(t)
	// As with `kubectl hub join --works=cluster-admin`: upstream's agent also has rights on CustomResourceDefinitions and roles.
	harness.MustKubectlOf(t, m.Instance, "", "create", "clusterrolebinding", "works-of-upstream", "--clusterrole=cluster-admin",
		"--serviceaccount=open-cluster-management-agent:klusterlet-registration-sa")
	for _, test := range upstreamCases {
		t.Run(test.name, func(t *testing.T) {
			c := &upstreamCase{delivery: *d, m: m, work: harness.Unique("work"), namespace: harness.Unique("objects")}
			c.T = t
			c.there("create", "namespace", c.namespace)
			test.run(c)
			c.on("delete", "manifestwork", "-n", m.name, c.work, "--ignore-not-found", "--timeout="+harness.Timeout.String())
		})
	}
}

// upstreamCase has a name for a work, and a namespace for its objects, which no work creates.
type upstreamCase struct {
	delivery
	m               *managed
	work, namespace string
}

// there runs kubectl on the managed cluster.
func (c *upstreamCase) there(args ...string) string {
	c.Helper()
	return strings.TrimSpace(harness.MustKubectlOf(c.T, c.m.Instance, "", args...))
}

// eventuallyThere waits until kubectl on the managed cluster prints a text.
func (c *upstreamCase) eventuallyThere(want string, args ...string) {
	c.Helper()
	harness.Eventually(c.T, strings.Join(args, " ")+" is "+want, func(context.Context) (bool, error) {
		got := c.there(args...)
		return harness.Holds(got == want, got)
	})
}

func (c *upstreamCase) configMap(name, data string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: %s}", name, c.namespace, data)
}

// workOf returns a work of these manifests, with further fields of its spec after the last line break.
func (c *upstreamCase) workOf(manifests ...string) string {
	return c.workNamed(c.work, manifests...)
}

func (c *upstreamCase) workNamed(name string, manifests ...string) string {
	return fmt.Sprintf("apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {name: %s, namespace: %s}\nspec:\n  workload:\n    manifests: [%s]\n",
		name, c.m.name, strings.Join(manifests, ", "))
}

func (c *upstreamCase) write(verb, yaml string, args ...string) {
	c.Helper()
	if said, err := c.try(verb, yaml, args...); err != nil {
		c.Fatalf("kubectl %s: %v\n%s", verb, err, said)
	}
}

func (c *upstreamCase) refused(verb, yaml string, args ...string) {
	c.Helper()
	said, _ := c.try(verb, yaml, args...)
	harness.Contains(c.T, said, "Error from server (BadRequest)")
}

// try writes with kubectl and returns its output. It retries a write that conflicts: kubectl replaces the version that it has read, and the agent may
// have changed the work since.
func (c *upstreamCase) try(verb, yaml string, args ...string) (said string, err error) {
	c.Helper()
	harness.Eventually(c.T, verb+" does not conflict", func(ctx context.Context) (bool, error) {
		cmd := c.hub.Kubectl(ctx, append([]string{verb, "-f", "-"}, args...)...)
		cmd.Stdin = strings.NewReader(yaml)
		var out []byte
		out, err = cmd.CombinedOutput()
		said = string(out)
		return harness.Holds(!strings.Contains(said, "Error from server (Conflict)"), said)
	})
	return said, err
}

// isApplied waits until the current generation of the work and all of its manifests are applied and available.
func (c *upstreamCase) isApplied(name string, manifests int) {
	c.Helper()
	const conditions = `{.metadata.generation}:{range .status.conditions[?(@.type=="Applied")]}{.observedGeneration}{.status}{end}` +
		`{range .status.conditions[?(@.type=="Available")]}{.status}{end}:` +
		`{range .status.resourceStatus.manifests[*].conditions[?(@.type=="Applied")]}{.status}{end}:{range .status.resourceStatus.manifests[*].conditions[?(@.type=="Available")]}{.status}{end}`
	c.eventually(name+" is applied", func(got string) bool {
		generation, rest, _ := strings.Cut(got, ":")
		all := strings.Repeat("True", manifests)
		return rest == generation+"TrueTrue:"+all+":"+all
	}, "get", "manifestwork", "-n", c.m.name, name, "-o", "jsonpath="+conditions)
}

func (c *upstreamCase) deleteWork(name string, args ...string) {
	c.Helper()
	c.on(append([]string{"delete", "manifestwork", "-n", c.m.name, name, "--timeout=" + harness.Timeout.String()}, args...)...)
}

// gone waits until the cluster has no objects of the kind and names.
func (c *upstreamCase) gone(kind, namespace string, names ...string) {
	c.Helper()
	for _, name := range names {
		if got := c.there("get", kind, "-n", namespace, name, "--ignore-not-found", "-o", "name"); got != "" {
			c.Errorf("%s in %s is still there", got, namespace)
		}
	}
}

// record returns the fields of the AppliedManifestWork of the work.
func (c *upstreamCase) record(fields string) string {
	c.Helper()
	return c.there("get", "appliedmanifestworks", "-o", fmt.Sprintf(`jsonpath={range .items[?(@.spec.manifestWorkName==%q)]}%s{end}`, c.work, fields))
}

func createUpdateDelete(c *upstreamCase) {
	made := harness.Unique("made")
	cm := func(name string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}", name, made)
	}
	cm3 := func(data string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: cm3, namespace: %s, finalizers: [cluster.open-cluster-management.io/testing]}, data: %s}",
			c.namespace, data)
	}
	namespace := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", made)
	c.write("create", c.workOf(cm("cm1"), namespace, cm("cm2"), cm3("{}")))
	c.isApplied(c.work, 4)
	c.there("get", "configmaps", "-n", made, "cm1", "cm2")
	c.there("get", "configmaps", "-n", c.namespace, "cm3")
	const resources = `{range .status.appliedResources[*]}{.version}/{.resource}/{.namespace}/{.name} {end}`
	want := strings.NewReplacer("MADE", made, "OWN", c.namespace).Replace("v1/configmaps/MADE/cm1 v1/configmaps/MADE/cm2 v1/configmaps/OWN/cm3 v1/namespaces//MADE")
	if got := c.record(resources); got != want {
		c.Errorf("appliedResources are %s, want %s", got, want)
	}

	c.Log("The same manifests in another order write nothing to it")
	before := c.record("{.metadata.resourceVersion}")
	c.write("replace", c.workOf(cm3("{}"), cm("cm2"), namespace, cm("cm1")))
	c.isApplied(c.work, 4)
	if after := c.record("{.metadata.resourceVersion}"); after != before {
		c.Errorf("the AppliedManifestWork was version %s, and is %s", before, after)
	}

	c.Log("One manifest goes, another one changes")
	c.write("replace", c.workOf(namespace, cm("cm2"), cm3("{x: z}")))
	c.isApplied(c.work, 3)
	harness.Eventually(c.T, "cm1 is forgotten", func(context.Context) (bool, error) {
		got := c.record(resources)
		return harness.Holds(!strings.Contains(got, "/cm1"), got)
	})
	c.gone("configmap", made, "cm1")
	c.eventuallyThere("z", "get", "configmap", "-n", c.namespace, "cm3", "-o", "jsonpath={.data.x}")

	c.Log("The work goes after its objects")
	c.deleteWork(c.work, "--wait=false")
	harness.Eventually(c.T, "cm3 is being deleted", func(context.Context) (bool, error) {
		return c.there("get", "configmap", "-n", c.namespace, "cm3", "-o", "jsonpath={.metadata.deletionTimestamp}") != "", nil
	})
	c.on("get", "manifestwork", "-n", c.m.name, c.work)
	c.there("patch", "configmap", "-n", c.namespace, "cm3", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	c.on("wait", "--for=delete", "manifestwork/"+c.work, "-n", c.m.name, "--timeout="+harness.Timeout.String())
	if got := c.record("{.metadata.name}"); got != "" {
		c.Errorf("%s is still there", got)
	}
	c.gone("namespace", "", made)
	c.gone("configmap", made, "cm2")
	c.gone("configmap", c.namespace, "cm3")
}

// jobOf returns a Job with a pod that has the label job.
func (c *upstreamCase) jobOf(name string) string {
	return fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s, namespace: %s}, spec: {template: {metadata: {labels: {job: %[1]s}}, spec: "+
		"{nodeName: %[3]s, terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [{name: c, image: example.com/job}]}}}}", name, c.namespace, node)
}

// runs waits until the pod of the job runs.
func (c *upstreamCase) runs() {
	c.Helper()
	c.eventuallyThere("Running", "get", "pods", "-n", c.namespace, "-l", "job=job1", "-o", "jsonpath={.items[*].status.phase}")
}

func job(c *upstreamCase) {
	c.write("create", c.workOf(c.jobOf("job1")))
	c.isApplied(c.work, 1)
	c.runs()
	c.deleteWork(c.work)
	c.eventuallyThere("", "get", "pods", "-n", c.namespace, "-o", "name")
}

func customResource(c *upstreamCase) {
	group := harness.Unique("guest") + ".example.com"
	version := func(name string, storage bool) string {
		return fmt.Sprintf("{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {foo: {type: string}}}}}}}", name, storage)
	}
	crd := fmt.Sprintf("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: guestbooks.%s}, spec: {group: %[1]s, scope: Namespaced, "+
		"names: {kind: Guestbook, listKind: GuestbookList, plural: guestbooks, singular: guestbook}, versions: [%s, %s]}}", group, version("v1", false), version("v2", true))
	role := fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s, labels: {open-cluster-management.io/aggregate-to-work: 'true'}}, "+
		"rules: [{apiGroups: [%s], resources: [guestbooks], verbs: [get, list, watch, create, update, patch, delete]}]}", c.work, group)
	cr := func(version, foo string) string {
		return fmt.Sprintf("{apiVersion: %s/%s, kind: Guestbook, metadata: {name: cr1, namespace: %s}, spec: {foo: %s}}", group, version, c.namespace, foo)
	}
	c.write("create", c.workOf(crd, role, cr("v1", "bar")))
	c.isApplied(c.work, 3)
	const uid = "jsonpath={.metadata.uid}"
	c.Log("The object becomes one of another version, and is the same one")
	before := c.there("get", "guestbooks.v1."+group, "-n", c.namespace, "cr1", "-o", uid)
	c.write("replace", c.workOf(crd, role, cr("v2", "foo")))
	c.eventuallyThere("foo "+before, "get", "guestbooks.v2."+group, "-n", c.namespace, "cr1", "-o", "jsonpath={.spec.foo} {.metadata.uid}")
	c.Log("All of it goes")
}

// deployment returns a Deployment with pods that the kubelet makes ready.
func (c *upstreamCase) deployment(replicas int) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: busybox, namespace: %s}, spec: {replicas: %d, selector: {matchLabels: {app: busybox}}, "+
		"template: {metadata: {labels: {app: busybox}}, spec: {nodeName: %s, terminationGracePeriodSeconds: 0, containers: [{name: c, image: example.com/busybox}]}}}}", c.namespace, replicas, node)
}

// configOf returns the configuration of an object of the work.
func (c *upstreamCase) configOf(group, resource, name, config string) string {
	return fmt.Sprintf("  manifestConfigs: [{resourceIdentifier: {group: %s, resource: %s, namespace: %s, name: %s}, %s}]\n", group, resource, c.namespace, name, config)
}

func feedback(c *upstreamCase) {
	c.write("create", c.workOf(c.deployment(1))+c.configOf("apps", "deployments", "busybox", `feedbackRules: [{type: WellKnownStatus}, {type: JSONPaths, jsonPaths: `+
		`[{name: AvailableCondition, path: '.status.conditions[?(@.type=="Available")].status'}]}]`))
	c.eventually("the feedback", is("ReadyReplicas=1 Replicas=1 AvailableReplicas=1 AvailableCondition=True : True"), "get", "manifestwork", "-n", c.m.name, c.work, "-o",
		`jsonpath={range .status.resourceStatus.manifests[0].statusFeedback.values[*]}{.name}={.fieldValue.integer}{.fieldValue.string} {end}`+
			`: {.status.resourceStatus.manifests[*].conditions[?(@.type=="StatusFeedbackSynced")].status}`)
}

func ownersThatAreWorks(c *upstreamCase) {
	second := harness.Unique("second")
	c.write("create", c.workOf(c.configMap("cm1", "{}")))
	c.write("create", c.workNamed(second, c.configMap("cm1", "{}")))
	c.isApplied(c.work, 1)
	c.isApplied(second, 1)
	c.eventuallyThere("AppliedManifestWork AppliedManifestWork", "get", "configmap", "-n", c.namespace, "cm1", "-o", "jsonpath={.metadata.ownerReferences[*].kind}")
	const uid = "jsonpath={.metadata.uid}"
	before := c.there("get", "configmap", "-n", c.namespace, "cm1", "-o", uid)
	c.deleteWork(c.work)
	if after := c.there("get", "configmap", "-n", c.namespace, "cm1", "-o", uid); after != before {
		c.Errorf("the ConfigMap was %s, and is %s", before, after)
	}
	c.deleteWork(second)
	c.gone("configmap", c.namespace, "cm1")
}

func ownersThatAreNone(c *upstreamCase) {
	c.write("create", c.workOf(c.configMap("cm1", "{}")))
	c.isApplied(c.work, 1)
	c.there("create", "configmap", "-n", c.namespace, "owner")
	owner := c.there("get", "configmap", "-n", c.namespace, "owner", "-o", "jsonpath={.metadata.uid}")
	c.there("patch", "configmap", "-n", c.namespace, "cm1", "--type=json", "-p",
		fmt.Sprintf(`[{"op":"add","path":"/metadata/ownerReferences/-","value":{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}}]`, owner))
	if got := c.there("get", "configmap", "-n", c.namespace, "cm1", "-o", "jsonpath={.metadata.ownerReferences[*].kind}"); got != "AppliedManifestWork ConfigMap" {
		c.Errorf("the owners are %s", got)
	}
	c.deleteWork(c.work)
	c.eventuallyThere("", "get", "configmap", "-n", c.namespace, "cm1", "--ignore-not-found", "-o", "name")
}

// timeToLive verifies deletion as soon as the Job completes: upstream waits for three seconds after that.
func timeToLive(c *upstreamCase) {
	c.write("create", c.workOf(c.jobOf("job1"))+"  deleteOption: {propagationPolicy: Foreground, ttlSecondsAfterFinished: 0}\n"+
		c.configOf("batch", "jobs", "job1", `conditionRules: [{condition: Complete, type: CEL, message: Job completed successfully, celExpressions: `+
			`["object.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True')"]}]`))
	c.isApplied(c.work, 1)
	c.runs()
	c.there("patch", "pods", "-n", c.namespace, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Succeeded"}}`,
		c.there("get", "pods", "-n", c.namespace, "-l", "job=job1", "-o", "jsonpath={.items[0].metadata.name}"))
	c.on("wait", "--for=delete", "manifestwork/"+c.work, "-n", c.m.name, "--timeout="+harness.Timeout.String())
	c.gone("job", c.namespace, "job1")
}

func ignoredFields(c *upstreamCase) {
	ignoring := func(replicas int, condition string) string {
		return c.workOf(c.deployment(replicas)) + c.configOf("apps", "deployments", "busybox", fmt.Sprintf(
			"updateStrategy: {type: ServerSideApply, serverSideApply: {ignoreFields: [{condition: %s, jsonPaths: [.spec.replicas]}]}}", condition))
	}
	replicas := []string{"get", "deployment", "-n", c.namespace, "busybox", "-o", "jsonpath={.spec.replicas} {.metadata.ownerReferences[*].kind}"}
	c.write("create", ignoring(2, "OnSpokeChange"))
	c.isApplied(c.work, 1)
	c.eventuallyThere("2 AppliedManifestWork", replicas...)
	c.write("replace", ignoring(3, "OnSpokeChange"))
	c.eventuallyThere("3 AppliedManifestWork", replicas...)
	harness.MustKubectlOf(c.T, c.m.Instance, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: busybox, namespace: %s}, spec: {replicas: 5}}", c.namespace),
		"apply", "--server-side", "--force-conflicts", "--field-manager=another-actor", "-f", "-")
	c.write("replace", ignoring(4, "OnSpokePresent"))
	c.isApplied(c.work, 1)
	c.eventuallyThere("5 AppliedManifestWork", replicas...)
	c.deleteWork(c.work)
	c.gone("deployment", c.namespace, "busybox")
}
