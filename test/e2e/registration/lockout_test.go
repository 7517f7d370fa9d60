// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// kindsOfClusters are the kinds of the objects that the hub creates for clusters.
const kindsOfClusters = "leases.coordination.k8s.io,configmaps,rolebindings.rbac.authorization.k8s.io,clusterroles.rbac.authorization.k8s.io," +
	"clusterrolebindings.rbac.authorization.k8s.io,namespaces"

// locked is a hub with a cluster whose objects the test deletes.
type locked struct {
	*delivery
	m     *managed
	texts int
}

// made returns the objects that the hub created for the cluster, or for all clusters, as arguments of kubectl.
func (l *locked) made() (objects []string) {
	l.Helper()
	labels := fmt.Sprintf("%s in (%s,managed-clusters)", registration.ClusterNameLabel, l.m.name)
	out := l.on("get", kindsOfClusters, "-A", "-l", labels, "-o",
		`go-template={{range .items}}{{.kind}} {{.metadata.name}} {{or .metadata.namespace ""}}{{"\n"}}{{end}}`)
	return strings.Split(out, "\n")
}

// uid returns the UID of the current object, or "" if it does not exist.
func (l *locked) uid(object string) string {
	l.Helper()
	return l.on(append([]string{"get", "--ignore-not-found", "-o", "jsonpath={.metadata.uid}"}, arguments(object)...)...)
}

// arguments returns the arguments by which kubectl addresses an object.
func arguments(object string) []string {
	fields := strings.Fields(object)
	if len(fields) == 3 {
		fields = append(fields[:2], "-n", fields[2])
	}
	return fields
}

// works verifies that the cluster is available and receives new works.
func (l *locked) works() {
	l.Helper()
	l.m.awaitCondition(l.T, registration.ConditionHubAccepted, metav1.ConditionTrue)
	leases := harness.Kube(l.T, l.hub.AdminConfig()).CoordinationV1().Leases(l.m.name)
	harness.Eventually(l.T, "the agent renews the lease", func(ctx context.Context) (bool, error) {
		lease, err := leases.Get(ctx, registration.LeaseName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return harness.Holds(lease.Spec.RenewTime.Sub(lease.CreationTimestamp.Time) > 0 && len(lease.ManagedFields) > 1, fmt.Sprint(lease))
	})
	l.m.awaitCondition(l.T, registration.ConditionAvailable, metav1.ConditionTrue)
	l.texts++
	text := fmt.Sprint("text ", l.texts)
	l.apply(delivering, l.team, text)
	awaitTexts(l.T, text, l.m)
}

// gone waits until an object does not exist.
func (l *locked) gone(object string) {
	l.Helper()
	harness.Eventually(l.T, object+" is gone", func(context.Context) (bool, error) {
		return harness.Holds(l.uid(object) == "", l.on("get", "manifestworks", "-n", l.m.name, "-o", "yaml"))
	})
}

// TestLockout_DeletedObjectsAreRecreated deletes each single object that the hub has created for a cluster. One of them is its namespace,
// whose bindings are deleted before the works that wait for the agent. The test takes two deletions of a namespace, which Kubernetes retries after
// eight seconds.
func TestLockout_DeletedObjectsAreRecreated(t *testing.T) {
	d := newDelivery(t, controlled(t, inMode(agentroles.PerCluster)), 1)
	l := &locked{delivery: d, m: d.clusters[0]}
	l.works()
	objects := l.made()
	// The objects are the role of all agents for works, a ConfigMap, a Lease, a Namespace, and two roles with their three bindings.
	if len(objects) != 8 {
		t.Errorf("there are %d objects of the cluster: %q", len(objects), objects)
	}
	for _, object := range objects {
		t.Log(object)
		before := l.uid(object)
		l.on(append([]string{"delete", "--timeout=" + harness.Timeout.String()}, arguments(object)...)...)
		harness.Eventually(t, "it is made again", func(context.Context) (bool, error) {
			now := l.uid(object)
			return harness.Holds(now != "" && now != before, now)
		})
		l.works()
	}

	t.Log("The namespace, while the agent is away for ever")
	d.stop[l.m]()
	l.on("delete", "--wait=false", "namespace", l.m.name)
	if reason := l.m.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionFalse); reason != registration.ReasonNamespaceTerminating {
		t.Errorf("the reason is %s", reason)
	}
	out, _, _ := harness.Plugin{Kubeconfig: l.hub.AdminKubeconfig()}.Run(t, "why", "cluster", l.m.name)
	harness.Contains(t, out, "its namespace on the hub is being deleted", "kubectl hub deny --clusters "+l.m.name, "findings.md#clusternamespaceterminating")
	l.m.accepted(t, false)
	l.gone("Namespace " + l.m.name)
	if want := fmt.Sprint("text ", l.texts); l.m.text(t) != want {
		t.Errorf("the cluster has %q, want what the agent did not take out of it", l.m.text(t))
	}

	t.Log("And it comes back")
	l.m.accepted(t, true)
	d.stop[l.m] = l.m.agent(t, "--works", "--spoke-kubeconfig="+l.m.worker(t))
	l.works()

	t.Log("The cluster, while the agent is away for ever")
	d.stop[l.m]()
	l.on("delete", "--wait=false", "managedcluster", l.m.name)
	l.m.awaitCondition(t, registration.ConditionDeleting, metav1.ConditionFalse)
	l.m.accepted(t, false)
	l.gone("ManagedCluster " + l.m.name)
	l.gone("Namespace " + l.m.name)
}
