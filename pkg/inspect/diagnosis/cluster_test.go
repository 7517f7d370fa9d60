// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// setCondition sets a condition with a transition ten minutes ago.
func setCondition(all *[]metav1.Condition, name string, status metav1.ConditionStatus, reason, message string) {
	for i := range *all {
		if (*all)[i].Type == name {
			*all = append((*all)[:i], (*all)[i+1:]...)
			break
		}
	}
	*all = append(*all, metav1.Condition{Type: name, Status: status, Reason: reason, Message: message, LastTransitionTime: before(10 * time.Minute)})
}

// wellCluster returns a cluster without problems, as an admin sees it.
func wellCluster() (ClusterFacts, *clusterv1.ManagedCluster, *coordinationv1.Lease) {
	m := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", CreationTimestamp: before(time.Hour), Annotations: map[string]string{}}}
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-hub", Time: new(before(50 * time.Minute)),
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:hubAcceptsClient":{}}}`)}}
	m.Spec.HubAcceptsClient, m.Spec.LeaseDurationSeconds = true, 60
	for _, name := range []string{registration.ConditionHubAccepted, registration.ConditionJoined, registration.ConditionAvailable, registration.ConditionClockSynced} {
		setCondition(&m.Status.Conditions, name, metav1.ConditionTrue, "Well", "well")
	}
	lease := &coordinationv1.Lease{}
	lease.Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-20 * time.Second)))
	return ClusterFacts{Name: "c1", Now: now, Service: "v1.x", Cluster: Found(m), Lease: Found(lease), Requests: Found([]CertificateRequest(nil)),
		Accepters: Found([]string{"user dana"})}, m, lease
}

// checkAnswer verifies the finding of an answer, and that each broken chain names the user who must act, and the next step.
func checkAnswer(t *testing.T, a Answer, id ID, step string, says ...string) {
	t.Helper()
	if id == "" {
		if a.Finding != nil || a.Verdict == "" {
			t.Errorf("finds %+v, and says %q", a.Finding, a.Verdict)
		}
		return
	}
	f := a.Finding
	if f == nil {
		t.Fatalf("finds nothing, want %s: %+v", id, a)
	}
	if f.ID != id || f.Severity == "" || f.Object == "" || f.Turn == "" || len(f.Fix) == 0 {
		t.Errorf("finds %+v, want %s with severity, object, turn and fix", f, id)
	}
	after := false
	for _, s := range a.Steps {
		if (s.State == Broken) != (s.Name == step) || after != (s.State == NotReached) {
			t.Errorf("step %s is %s, and %s is to be broken", s.Name, s.State, step)
		}
		after = after || s.State == Broken
	}
	text := a.Verdict + "\n" + f.Cause + "\n" + f.Turn + "\n" + strings.Join(f.Fix, "\n")
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("says\n%s\nwithout %q", text, s)
		}
	}
}

func TestOfCluster(t *testing.T) {
	condition := func(m *clusterv1.ManagedCluster, name string, status metav1.ConditionStatus, reason, message string) {
		setCondition(&m.Status.Conditions, name, status, reason, message)
	}
	notJoined := func(m *clusterv1.ManagedCluster) {
		condition(m, registration.ConditionJoined, metav1.ConditionFalse, "No", "no")
	}
	for name, test := range map[string]struct {
		change func(*ClusterFacts, *clusterv1.ManagedCluster, *coordinationv1.Lease)
		id     ID
		step   string
		says   []string
	}{
		"well": {},
		"hub-apiserver does not answer": {func(f *ClusterFacts, _ *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			f.Cluster, f.ServiceFault = Read[*clusterv1.ManagedCluster]{}, "FailedDiscoveryCheck: no route"
		}, HubUnavailable, "hub answers", []string{"no route", "kubectl describe apiservice v1.x"}},
		"not there": {func(f *ClusterFacts, _ *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			f.Cluster = Missing[*clusterv1.ManagedCluster]()
		}, ClusterMissing, "exists", []string{"kubectl hub get token"}},
		"being deleted": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			m.DeletionTimestamp, m.Finalizers = new(before(time.Minute)), []string{"x/y"}
			condition(m, registration.ConditionDeleting, metav1.ConditionFalse, registration.ReasonResourceRemaining, "works remain")
		}, ClusterDeleting, "exists", []string{"works remain", "x/y"}},
		"not accepted": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			m.Spec.HubAcceptsClient = false
		},
			ClusterNotAccepted, "accepted", []string{"user dana", "kubectl hub accept --clusters c1"}},
		"denied": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			m.Spec.HubAcceptsClient = false
			condition(m, registration.ConditionHubAccepted, metav1.ConditionFalse, registration.ReasonDenied, "denied")
		}, ClusterNotAccepted, "accepted", []string{"denied later"}},
		"the hub cannot make what it needs": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			condition(m, registration.ConditionHubAccepted, metav1.ConditionFalse, registration.ReasonError, "the namespace is another's")
		}, ClusterSetupFailed, "accepted", []string{"the namespace is another's"}},
		"its namespace is being deleted": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			condition(m, registration.ConditionHubAccepted, metav1.ConditionFalse, registration.ReasonNamespaceTerminating, "works remain")
		}, ClusterNamespaceTerminating, "accepted", []string{"works remain", "kubectl get manifestworks -n c1", "the agent of c1"}},
		"the hub has not acted": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) { m.Status.Conditions = nil },
			ClusterSetupFailed, "accepted", []string{"hub-controller-manager"}},
		"not asked": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) { notJoined(m) }, RequestMissing, "identity", nil},
		"only another's request": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			f.Requests = Found([]CertificateRequest{{Name: "r", NotAnAgents: "no", Approved: true, Expires: now.Add(time.Hour)}})
		}, RequestMissing, "identity", nil},
		"pending": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			f.Requests = Found([]CertificateRequest{{Name: "r1", Requester: "bob", Made: before(time.Minute)}})
		}, RequestWaits, "identity", []string{"bob", "kubectl certificate approve r1"}},
		"several pending": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			f.Requests = Found([]CertificateRequest{{Name: "r1", Requester: "eve"}, {Name: "r2", Requester: "bob"}})
		}, RequestWaits, "identity", []string{"<NAME OF THE RIGHT REQUEST>", "check its requester"}},
		"left to an admin": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			condition(m, registration.ConditionRequestWaits, metav1.ConditionTrue, registration.ReasonRequestWaits, "another key")
			f.Requests = Found([]CertificateRequest{{Name: "r1"}, {Name: "r2"}})
		}, RequestWaits, "identity", []string{"another key", "<NAME OF THE RIGHT REQUEST>"}},
		"left to an admin, who may not list requests": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			condition(m, registration.ConditionRequestWaits, metav1.ConditionTrue, registration.ReasonRequestWaits, "another key")
			f.Requests = Hidden[[]CertificateRequest]("you may not list them")
		}, RequestWaits, "identity", []string{"another key"}},
		"denied request": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			f.Requests = Found([]CertificateRequest{{Name: "r1", Refused: true, Why: "not ours"}})
		}, RequestRefused, "identity", []string{"not ours"}},
		"not signed": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			f.Requests = Found([]CertificateRequest{{Name: "r1", Approved: true}})
		}, RequestNotSigned, "identity", []string{"signer"}},
		"expired before it has joined": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			f.Requests = Found([]CertificateRequest{{Name: "r1", Approved: true, Expires: now.Add(-time.Hour)}})
		}, CertificateExpired, "identity", []string{"bootstrap token"}},
		"issued, and not joined": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			f.Requests = Found([]CertificateRequest{{Name: "r1", Approved: true, Expires: now.Add(time.Hour)}})
		}, AgentNotJoined, "joined", []string{"the agent of c1"}},
		"by AWS, and not joined": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			notJoined(m)
			m.Annotations[registration.AnnotationManagedClusterARN] = "arn:aws:eks:x"
		}, AgentNotJoined, "joined", nil},
		"expired lease": {func(_ *ClusterFacts, _ *clusterv1.ManagedCluster, l *coordinationv1.Lease) {
			l.Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-301 * time.Second)))
		}, AgentNotHeard, "agent heard", []string{"5m0s", "kubectl hub doctor --managed"}},
		"no lease": {func(f *ClusterFacts, _ *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			f.Lease = Missing[*coordinationv1.Lease]()
		}, AgentNotHeard, "agent heard", nil},
		"lost, by the hub's own clock": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			condition(m, registration.ConditionAvailable, metav1.ConditionUnknown, registration.ReasonLeaseUpdateStopped, "stopped")
		}, AgentNotHeard, "agent heard", nil},
		"lost, and the lease is not shown": {func(f *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			f.Lease = Hidden[*coordinationv1.Lease]("you may not get leases")
			condition(m, registration.ConditionAvailable, metav1.ConditionUnknown, registration.ReasonLeaseUpdateStopped, "stopped")
		}, AgentNotHeard, "agent heard", nil},
		"lost for want of a certificate": {func(f *ClusterFacts, _ *clusterv1.ManagedCluster, l *coordinationv1.Lease) {
			l.Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Hour)))
			f.Requests = Found([]CertificateRequest{{Name: "r1", Approved: true, Expires: now.Add(-time.Minute)}})
		}, CertificateExpired, "agent heard", nil},
		"lost, since its renewal waits": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, l *coordinationv1.Lease) {
			l.Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Hour)))
			condition(m, registration.ConditionRequestWaits, metav1.ConditionTrue, registration.ReasonRequestWaits, "another key")
		}, RequestWaits, "agent heard", nil},
		"its API server is not well": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			condition(m, registration.ConditionAvailable, metav1.ConditionFalse, registration.ReasonKubeAPIServerUnhealthy, "etcd failed.")
		}, ClusterNotAvailable, "available", []string{"etcd failed."}},
		"not told": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			m.Status.Conditions = m.Status.Conditions[:2]
		}, ClusterNotAvailable, "available", nil},
		"no renewal": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, _ *coordinationv1.Lease) {
			condition(m, registration.ConditionCertificateRotated, metav1.ConditionFalse, registration.ReasonCertificateFailed, "refused")
		}, CertificateNotRenewed, "certificate", []string{"works, but may lose its identity"}},
		"a clock that is off makes the lease look old": {func(_ *ClusterFacts, m *clusterv1.ManagedCluster, l *coordinationv1.Lease) {
			l.Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Hour)))
			condition(m, registration.ConditionClockSynced, metav1.ConditionFalse, registration.ReasonClockOutOfSync, "off.")
		}, ClockOutOfSync, "clock", nil},
	} {
		t.Run(name, func(t *testing.T) {
			facts, m, lease := wellCluster()
			if test.change != nil {
				test.change(&facts, m, lease)
			}
			checkAnswer(t, OfCluster(facts), test.id, test.step, test.says...)
		})
	}
}

// TestOfCluster_Unreadable verifies that what could not be read is not considered healthy, and is not needed if other facts suffice.
func TestOfCluster_Unreadable(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ClusterFacts)
		blind  bool
		unseen string
	}{
		"all":              {change: func(*ClusterFacts) {}},
		"not the cluster":  {func(f *ClusterFacts) { f.Cluster = Hidden[*clusterv1.ManagedCluster]("no cluster") }, true, "no cluster"},
		"nothing was read": {func(f *ClusterFacts) { *f = ClusterFacts{Name: "c1", Now: now} }, true, "it was not checked"},
		"not the lease":    {func(f *ClusterFacts) { f.Lease = Hidden[*coordinationv1.Lease]("no lease") }, true, "no lease"},
		"not the requests": {func(f *ClusterFacts) { f.Requests = Hidden[[]CertificateRequest]("no requests") }, false, ""},
		"the requests, and it has not joined": {func(f *ClusterFacts) {
			m, _ := f.Cluster.Get()
			m.Status.Conditions = m.Status.Conditions[:1]
			f.Requests = Hidden[[]CertificateRequest]("no requests")
		}, false, "no requests"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, _, _ := wellCluster()
			test.change(&facts)
			a := OfCluster(facts)
			if a.IsBlind() != test.blind || test.blind && !strings.Contains(a.Verdict, "may not see enough") {
				t.Errorf("blind is %t: %+v", a.IsBlind(), a)
			}
			if !strings.Contains(strings.Join(a.Unseen, "\n"), test.unseen) || test.unseen == "" && len(a.Unseen) > 0 {
				t.Errorf("not seen: %q, want %q", a.Unseen, test.unseen)
			}
		})
	}
}
