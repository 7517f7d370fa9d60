// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestWorth_AgentCannotFillFront verifies the size limits of objects that agents and bootstrap identities may store in the front's etcd.
// It costs about thirty requests.
func TestWorth_AgentCannotFillFront(t *testing.T) {
	t.Parallel()
	w := newWorth(t, &ofAllAgents)
	w.accept()
	long := strings.Repeat("x", 600)
	event := func(more string) string {
		return "{apiVersion: v1, kind: Event, type: Normal, metadata: {name: e, namespace: c1}, involvedObject: {namespace: c1, name: a, kind: ManifestWork}, " + more + "}"
	}
	newer := func(more string) string {
		return "{apiVersion: events.k8s.io/v1, kind: Event, type: Normal, eventTime: '2026-01-01T00:00:00.000000Z', metadata: {name: e, namespace: c1}, " +
			"regarding: {namespace: c1, name: a, kind: ManifestWork}, reportingController: a, reportingInstance: a, reason: A, action: A, " + more + "}"
	}
	as := w.as(hubAgent)
	w.want(hubAgent, "an Event", true, as.create(event("message: "+strings.Repeat("x", 1024)+", reason: A, source: {component: a, host: h}")))
	w.want(hubAgent, "an Event of events.k8s.io", true, as.create(newer("note: "+strings.Repeat("x", 1024))))
	for what, manifest := range map[string]string{
		"a long message":                   event("message: " + strings.Repeat("x", 1025)),
		"a long reason":                    event("reason: " + long),
		"a long host":                      event("source: {host: " + long + "}"),
		"a long field path":                event("related: {fieldPath: " + long + "}"),
		"a long regarded field":            newer("related: {fieldPath: " + long + "}"),
		"many annotations":                 strings.Replace(event("reason: A"), "namespace: c1}", "namespace: c1, annotations: {a: "+strings.Repeat("x", 4096)+"}}", 1),
		"many labels":                      strings.Replace(event("reason: A"), "namespace: c1}", "namespace: c1, labels: {"+many(17)+"}}", 1),
		"many finalizers":                  strings.Replace(event("reason: A"), "namespace: c1}", "namespace: c1, finalizers: [a/1, a/2, a/3, a/4, a/5]}", 1),
		"many annotations of a later kind": strings.Replace(newer("note: A"), "namespace: c1}", "namespace: c1, annotations: {a: "+strings.Repeat("x", 4096)+"}}", 1),
	} {
		w.want(hubAgent, what, false, as.create(manifest))
	}
	lease := "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: managed-cluster-lease, namespace: c1}}"
	w.want(hubAgent, "to renew its Lease", true, as.update(lease, "agent", "spec", "holderIdentity"))
	w.want(hubAgent, "a long holder", false, as.update(lease, long, "spec", "holderIdentity"))
	w.want(hubAgent, "a Lease of annotations", false, as.update(lease, strings.Repeat("x", 5000), "metadata", "annotations", "a"))

	subject := pkix.Name{CommonName: registration.ClusterUser("c1", "agent"), Organization: []string{registration.ClusterGroup("c1"), registration.ManagedClustersGroup}}
	huge := subject
	huge.Locality = []string{strings.Repeat("x", 16<<10)}
	for _, who := range []string{hubAgent, bootstrap} {
		as := w.as(who)
		w.want(who, "ask for a certificate", true, as.create(w.request("size", "c1", subject)))
		w.want(who, "ask without a label", false, as.create(w.request("size", "", subject)))
		w.want(who, "ask by a large request", false, as.create(w.request("size", "c1", huge)))
		annotated := as.object(w.request("size", "c1", subject))
		annotated.SetAnnotations(map[string]string{"a": strings.Repeat("x", 4096)})
		w.want(who, "ask with annotations", false, as.Create(t.Context(), annotated))
	}
	node := strings.ReplaceAll(w.request("size", "c1", subject), registration.SignerName, "kubernetes.io/kube-apiserver-client-kubelet")
	w.want(bootstrap, "ask for a node", false, w.as(bootstrap).create(node))
}

// TestWorth_AgentEventsAreLimited verifies that an agent may write Events in the namespace of its cluster, limited by kube-apiserver only:
// etcd has the Events of an hour.
func TestWorth_AgentEventsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorth(t, &ofAllAgents)
	w.accept()
	config := w.hub.UserConfig(w.users[hubAgent].name, w.users[hubAgent].groups...)
	config.QPS = -1
	events := harness.Kube(t, config).CoreV1().RESTClient()
	var err error
	written := 0
	for ; err == nil && written < 3000; written++ {
		err = events.Post().Namespace("c1").Resource("events").MaxRetries(0).Body(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", written)},
			InvolvedObject: corev1.ObjectReference{Namespace: "c1", Name: "a", Kind: "ManifestWork"}, Reason: "A"}).Do(t.Context()).Error()
	}
	if !apierrors.IsTooManyRequests(err) {
		t.Errorf("after %d events: %v", written, err)
	}
}

// many returns labels for YAML.
func many(n int) string {
	var labels []string
	for i := range n {
		labels = append(labels, fmt.Sprintf("l%d: a", i))
	}
	return strings.Join(labels, ", ")
}
