// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func authority(t *testing.T, ends time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func lease(name, holder string, renewed time.Duration) coordinationv1.Lease {
	l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	at := metav1.NewMicroTime(now.Add(-renewed))
	l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &holder, &at, new(int32(15))
	return l
}

func deployment(name, tag string) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: "images.example:5000/x/" + name + ":" + tag}}
	d.Status.AvailableReplicas = 1
	return d
}

// healthy returns a hub of pods without problems.
func healthy(t *testing.T) *doctor.Hub {
	t.Helper()
	expected, err := deploy.Hub{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	h := &doctor.Hub{Now: now, SkewWithin: time.Second, Patience: time.Hour, Expected: expected, Version: "v1.2.3"}
	ca := authority(t, now.Add(365*24*time.Hour))
	for _, o := range expected {
		switch kind := o.GetKind(); {
		case kind == "APIService":
			var s apiregistrationv1.APIService
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s); err != nil {
				t.Fatal(err)
			}
			s.Spec.CABundle = ca
			s.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue}}
			h.APIServices.Items = append(h.APIServices.Items, s)
		case kind == "ServiceAccount":
			h.Accounts.Items = append(h.Accounts.Items, o.GetNamespace()+"/"+o.GetName())
		case slices.Contains(doctor.RightsKinds, kind):
			h.Rights.Items = append(h.Rights.Items, o.DeepCopy())
		case slices.Contains(doctor.PolicyKinds, kind):
			h.Policies.Items = append(h.Policies.Items, o.DeepCopy())
		}
	}
	for _, name := range []string{"hub-apiserver", "hub-controller-manager", "hub-certificate-approver"} {
		h.Deployments.Items = append(h.Deployments.Items, deployment(name, "v1.2.3"))
	}
	h.Leases.Items = []coordinationv1.Lease{lease("hub-controller-manager", "a", 5*time.Second), lease("hub-certificate-approver", "b", 5*time.Second)}
	cluster := clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "rome", Labels: map[string]string{"tier": "gold"}, CreationTimestamp: ago(24 * time.Hour)}}
	cluster.Spec.HubAcceptsClient = true
	cluster.Status.Conditions = []metav1.Condition{{Type: registration.ConditionAvailable, Status: metav1.ConditionTrue}}
	h.Clusters.Items = []clusterv1.ManagedCluster{cluster}
	h.Sets.Items = []v1beta1.ManagedClusterSet{set("gold", "tier"), {ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	h.Bindings.Items = []v1beta2.ManagedClusterSetBinding{binding("gold")}
	h.CRDs.Items = []string{"appliedmanifestworks.work.open-cluster-management.io", "widgets.example.com"}
	h.APIServices.Seen, h.CRDs.Seen, h.Rights.Seen, h.Policies.Seen, h.Accounts.Seen = true, true, true, true, true
	h.Leases.Seen, h.Deployments.Seen, h.Clusters.Seen, h.Requests.Seen, h.Sets.Seen, h.Bindings.Seen = true, true, true, true, true, true
	return h
}

func set(name, key string) v1beta1.ManagedClusterSet {
	s := v1beta1.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(2 * time.Hour)}}
	s.Spec.ClusterSelector = v1beta1.ManagedClusterSelector{SelectorType: v1beta1.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{"a;b"}}}}}
	return s
}

func binding(set string) v1beta2.ManagedClusterSetBinding {
	return v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: set, CreationTimestamp: ago(time.Hour)},
		Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
}

// says sets the version that an agent reports, and the certificates by which it trusts the hub.
func says(h *doctor.Hub, version string, cas ...string) {
	var hashes []string
	for _, ca := range cas {
		hashes = append(hashes, registration.CertificateHash([]byte(ca)))
	}
	h.Clusters.Items[0].Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: registration.ClaimAgentVersion, Value: version},
		{Name: registration.ClaimHubCA, Value: strings.Join(hashes, ",")}}
}

func unheard(h *doctor.Hub) {
	h.Clusters.Items[0].Status.Conditions = []metav1.Condition{{Type: registration.ConditionAvailable, Status: metav1.ConditionUnknown, LastTransitionTime: ago(time.Hour)}}
}

func request(name string, age time.Duration, conditions ...certificatesv1.CertificateSigningRequestCondition) certificatesv1.CertificateSigningRequest {
	r := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(age),
		Labels: map[string]string{registration.ClusterNameLabel: "rome"}}}
	r.Spec.SignerName, r.Spec.Username, r.Status.Conditions = registration.SignerName, "mallory", conditions
	return r
}

func approved(age time.Duration) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, LastUpdateTime: ago(age)}
}

func toService(has, endpoints, seen bool) doctor.Webhook {
	w := doctor.Webhook{Resource: "validatingwebhookconfiguration", Configuration: "w", Name: "w.example.com", Fails: true, Namespace: "ns", Service: "s",
		HasService: has, HasEndpoints: endpoints, Seen: seen}
	w.Rules = []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, Resources: []string{"managedclusters"}}}}
	return w
}

func without(items []*unstructured.Unstructured, kind, name string) []*unstructured.Unstructured {
	return slices.DeleteFunc(items, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
}

func TestHub_Healthy(t *testing.T) {
	h := healthy(t)
	r := h.Check()
	if len(r.Findings) > 0 || r.Worst() != "" || len(r.Checked) == 0 {
		t.Errorf("%+v", r)
	}
	// A user without permissions gets no findings, as nothing is known.
	if r := (&doctor.Hub{Now: now, Expected: h.Expected, Patience: time.Hour}).Check(); len(r.Findings) > 0 {
		t.Errorf("nothing was seen, and found: %+v", r.Findings)
	}
}

// TestHub_Faults verifies that each fault causes one kind of finding.
func TestHub_Faults(t *testing.T) {
	const first = "v1.cluster.open-cluster-management.io"
	service := func(h *doctor.Hub) *apiregistrationv1.APIService { return &h.APIServices.Items[0] }
	unavailable := func(h *doctor.Hub, message string) {
		service(h).Status.Conditions[0] = apiregistrationv1.APIServiceCondition{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionFalse,
			Reason: "FailedDiscoveryCheck", Message: message, LastTransitionTime: ago(time.Minute)}
	}
	for name, test := range map[string]struct {
		change   func(h *doctor.Hub)
		id       diagnosis.ID
		severity diagnosis.Severity
		object   string
		cause    string
		fix      string
	}{
		"an APIService is missing": {func(h *doctor.Hub) { h.APIServices.Items = h.APIServices.Items[1:] },
			doctor.APIServiceMissing, diagnosis.Error, "apiservice/" + first, "no such APIService", "--show apiservice/" + first},
		"the Service has no endpoints": {func(h *doctor.Hub) { unavailable(h, "no endpoints") },
			doctor.APIServiceUnavailable, diagnosis.Error, "apiservice/" + first, "no endpoints. The Deployment hub-apiserver has 1 available", "rollout restart deployment hub-apiserver"},
		"the front does not answer": {func(h *doctor.Hub) { h.Paths = map[string]string{first: "503"} },
			doctor.APIServiceUnavailable, diagnosis.Error, "apiservice/" + first, "503", "kubectl"},
		"the user may see no APIServices": {func(h *doctor.Hub) {
			h.APIServices, h.Paths = doctor.List[apiregistrationv1.APIService]{}, map[string]string{first: "503"}
		},
			doctor.APIServiceUnavailable, diagnosis.Error, "apiservice/" + first, "503", "kubectl"},
		"x509": {func(h *doctor.Hub) { unavailable(h, "x509: unknown authority") },
			doctor.APIServiceDistrusted, diagnosis.Error, "apiservice/" + first, "unknown authority", "CA=$(kubectl"},
		"no caBundle": {func(h *doctor.Hub) { service(h).Spec.CABundle = nil },
			doctor.APIServiceDistrusted, diagnosis.Error, "apiservice/" + first, "is empty", "CA=$(kubectl"},
		"a caBundle that is none": {func(h *doctor.Hub) { service(h).Spec.CABundle = []byte("x") },
			doctor.APIServiceDistrusted, diagnosis.Error, "apiservice/" + first, "no certificate", "CA=$(kubectl"},
		"a CA that has ended": {func(h *doctor.Hub) { service(h).Spec.CABundle = authority(t, now.Add(-time.Hour)) },
			doctor.APIServiceDistrusted, diagnosis.Error, "apiservice/" + first, "expired on 2026-06-01", "CA=$(kubectl"},
		"a CA that ends": {func(h *doctor.Hub) { service(h).Spec.CABundle = authority(t, now.Add(time.Hour)) },
			doctor.CertificateExpiring, diagnosis.Warning, "apiservice/" + first, "expires on 2026-06-01", "kubectl"},
		"no check of the server": {func(h *doctor.Hub) { service(h).Spec.InsecureSkipTLSVerify, service(h).Spec.CABundle = true, nil },
			doctor.APIServiceInsecure, diagnosis.Warning, "apiservice/" + first, "any server at the address", "insecureSkipTLSVerify"},
		"CRDs serve": {func(h *doctor.Hub) {
			service(h).Spec.Service = nil
			h.CRDs.Items = append(h.CRDs.Items, "managedclusters.cluster.open-cluster-management.io")
		},
			doctor.CustomResourcesInTheWay, diagnosis.Error, "apiservice/" + first, "not from hub-apiserver", "kubectl delete crd managedclusters.cluster"},
		"CRDs are hidden": {func(h *doctor.Hub) {
			h.CRDs.Items = append(h.CRDs.Items, "placements.cluster.open-cluster-management.io")
		},
			doctor.CustomResourcesInTheWay, diagnosis.Warning, "customresourcedefinition/placements.", "hidden", "kubectl delete crd placements.cluster"},
		"a role is missing": {func(h *doctor.Hub) {
			h.Rights.Items = without(h.Rights.Items, "ClusterRole", "clusterhub:hub-apiserver")
		},
			doctor.PermissionsMissing, diagnosis.Error, "clusterrole/clusterhub:hub-apiserver", "The ClusterRole does not exist", "--show clusterrole/clusterhub:hub-apiserver |"},
		"a policy is missing": {func(h *doctor.Hub) {
			h.Policies.Items = without(h.Policies.Items, "ValidatingAdmissionPolicy", "controllers-sets.clusterhub.dev")
		},
			doctor.PolicyMissing, diagnosis.Error, "validatingadmissionpolicy/controllers-sets", "does not limit", "--show"},
		"no lease": {func(h *doctor.Hub) { h.Leases.Items = h.Leases.Items[1:] },
			doctor.LeaderMissing, diagnosis.Error, "lease/hub-controller-manager", "never run", "kubectl"},
		"a lease that was given back": {func(h *doctor.Hub) { h.Leases.Items[0] = lease("hub-controller-manager", "", time.Second) },
			doctor.LeaderMissing, diagnosis.Error, "lease/hub-controller-manager", "released its lease", "kubectl"},
		"a lease that has ended": {func(h *doctor.Hub) { h.Leases.Items[0] = lease("hub-controller-manager", "a", time.Minute) },
			doctor.LeaderMissing, diagnosis.Error, "lease/hub-controller-manager", "renewed its lease 1m0s ago", "kubectl"},
		"the local clock is ahead":  {func(h *doctor.Hub) { h.Skew = time.Minute }, doctor.ClockSkew, diagnosis.Warning, "clock/local", "1m0s ahead of", "set-ntp"},
		"the local clock is behind": {func(h *doctor.Hub) { h.Skew = -time.Minute }, doctor.ClockSkew, diagnosis.Warning, "clock/local", "1m0s behind", "set-ntp"},
		"the clock of a controller is ahead": {func(h *doctor.Hub) { h.Leases.Items[0] = lease("hub-controller-manager", "a\nrm", -time.Minute) },
			doctor.ClockSkew, diagnosis.Error, "lease/hub-controller-manager", "1m0s in the future", "# on the machine of a?rm:"},
		"components of two versions": {func(h *doctor.Hub) { h.Deployments.Items[1] = deployment("hub-controller-manager", "v1.2.2") },
			doctor.VersionSkew, diagnosis.Warning, "deployment/hub-controller-manager", "has version v1.2.2", "hub-controller-manager=images.example:5000/x/hub-controller-manager:v1.2.3"},
		"another kubectl hub": {func(h *doctor.Hub) { h.Version, h.Rights.Items, h.Policies.Items = "v1.3.0", nil, nil },
			doctor.VersionSkew, diagnosis.Warning, "program/kubectl-hub", "v1.3.0, and the hub v1.2.3", "install kubectl-hub v1.2.3"},
		"no room": {func(h *doctor.Hub) { h.Storage.Refused = "the database is full." },
			doctor.StorageFull, diagnosis.Error, "etcd", "database is full.", "kubectl get"},
		"a full etcd, by clusters that wait": {func(h *doctor.Hub) {
			h.Storage.Refused = "full"
			noise := clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "noise;x", CreationTimestamp: ago(time.Minute), Annotations: map[string]string{"a": strings.Repeat("x", 20<<10)}}}
			h.Clusters.Items = append(h.Clusters.Items, noise)
		}, doctor.StorageFull, diagnosis.Error, "etcd", "The largest of 2 clusters is noise;x, with 20 KiB.", "kubectl delete managedclusters.cluster.open-cluster-management.io --wait=false 'noise;x'"},
		"a full etcd":        {func(h *doctor.Hub) { h.Storage.Size, h.Storage.Quota = 8<<30, 8<<30 }, doctor.StorageFull, diagnosis.Error, "etcd", "8192 MiB of its quota of 8192 MiB", "kubectl"},
		"a nearly full etcd": {func(h *doctor.Hub) { h.Storage.Size, h.Storage.Quota = 7500<<20, 8<<30 }, doctor.StorageNearlyFull, diagnosis.Warning, "etcd", "7500 MiB", "kubectl"},
		"the front is not ready": {func(h *doctor.Hub) { h.FrontReady = "[-]etcd failed" },
			doctor.FrontNotReady, diagnosis.Error, "kube-apiserver", "etcd failed", "/readyz"},
		"the certificate of the front ends": {func(h *doctor.Hub) { h.Serving = new(now.Add(24 * time.Hour)) },
			doctor.CertificateExpiring, diagnosis.Warning, "kube-apiserver", "2026-06-02", "kubeadm"},
		"a webhook without a Service": {func(h *doctor.Hub) { h.Webhooks = []doctor.Webhook{toService(false, false, true)} },
			doctor.WebhookUnreachable, diagnosis.Error, "validatingwebhookconfiguration/w", "does not exist", "/webhooks/0/failurePolicy"},
		"a webhook without endpoints": {func(h *doctor.Hub) {
			h.Webhooks = []doctor.Webhook{toService(true, false, true)}
			h.Webhooks[0].Narrowed = true
		}, doctor.WebhookUnreachable, diagnosis.Warning, "validatingwebhookconfiguration/w", "no ready endpoint", "kubectl"},
		"a cluster waits": {func(h *doctor.Hub) {
			h.Clusters.Items[0].Spec.HubAcceptsClient = false
			h.Requests.Items = []certificatesv1.CertificateSigningRequest{request("r", 2*time.Hour)} // for the same reason
		}, doctor.AcceptancePending, diagnosis.Warning, "managedcluster/rome", "waited for 24h0m0s", "accept --clusters rome"},
		"a cluster is lost": {func(h *doctor.Hub) {
			h.Clusters.Items[0].Status.Conditions[0] = metav1.Condition{Type: registration.ConditionAvailable, Status: metav1.ConditionUnknown, LastTransitionTime: ago(time.Hour), Message: "stopped"}
		}, doctor.ClusterUnheard, diagnosis.Warning, "managedcluster/rome", "1h0m0s ago: stopped", "doctor --managed"},
		"the CA of the hub was renewed": {func(h *doctor.Hub) {
			says(h, "v1.2.3", "old")
			h.Authorities = []string{registration.CertificateHash([]byte("new"))}
			unheard(h)
		}, doctor.AgentTrustsOtherCA, diagnosis.Error, "managedcluster/rome", "It trusts the CA " + registration.CertificateHash([]byte("old")), "kubectl hub get token\n"},
		"an agent is newer than the hub": {func(h *doctor.Hub) { says(h, "v1.3.0") }, doctor.AgentVersionSkew, diagnosis.Warning, "managedcluster/rome",
			"version v1.3.0, and the hub v1.2.3: it is newer than the hub", "set image deployment/hub-agent"},
		// A client with a bootstrap token chooses the name of a request.
		"a request waits": {func(h *doctor.Hub) {
			h.Requests.Items = []certificatesv1.CertificateSigningRequest{request("r;reboot", 2*time.Hour)}
		},
			doctor.CertificateRequestPending, diagnosis.Warning, "certificatesigningrequest/r;reboot", "mallory requested", "kubectl describe csr 'r;reboot'"},
		"a request is not signed": {func(h *doctor.Hub) {
			h.Requests.Items = []certificatesv1.CertificateSigningRequest{request("r", 2*time.Hour, approved(time.Hour))}
		}, doctor.SignerMissing, diagnosis.Error, "certificatesigningrequest/r", "no certificate was issued", "kubectl"},
		"a set names a missing label": {func(h *doctor.Hub) { h.Sets.Items[0] = set("gold", "teir") },
			doctor.SetLabelUnknown, diagnosis.Warning, "managedclusterset/gold", "the label teir", "label <CLUSTER> teir='a;b'"},
		"an exclusive set names a missing label": {func(h *doctor.Hub) {
			h.Sets.Items[0].Spec.ClusterSelector = v1beta1.ManagedClusterSelector{SelectorType: v1beta1.ExclusiveLabel, ExclusiveLabel: &v1beta1.ManagedClusterLabel{Key: "team", Value: "x"}}
		}, doctor.SetLabelUnknown, diagnosis.Warning, "managedclusterset/gold", "the label team", "label <CLUSTER> team=x"},
		"a binding to a missing set": {func(h *doctor.Hub) { h.Bindings.Items[0] = binding("blue") },
			doctor.BoundSetMissing, diagnosis.Warning, "managedclustersetbinding/blue in team", "blue, which does not exist", "kubectl -n team delete"},
	} {
		h := healthy(t)
		test.change(h)
		r := h.Check()
		if len(r.Findings) != 1 || r.Worst() != test.severity {
			t.Errorf("%s: %+v", name, r.Findings)
			continue
		}
		f, fix := r.Findings[0], strings.Join(r.Findings[0].Fix, "\n")
		if f.ID != test.id || f.Severity != test.severity || !strings.HasPrefix(f.Object, test.object) || !strings.Contains(f.Cause, test.cause) || !strings.Contains(fix, test.fix) || f.Turn == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestHub_NoFalseAlarms verifies that valid variants cause no findings.
func TestHub_NoFalseAlarms(t *testing.T) {
	for name, change := range map[string]func(h *doctor.Hub){
		"a component that is left out": func(h *doctor.Hub) {
			h.Accounts.Items = slices.DeleteFunc(h.Accounts.Items, func(a string) bool { return strings.HasSuffix(a, "/hub-certificate-approver") })
			h.Rights.Items = slices.DeleteFunc(h.Rights.Items, func(o *unstructured.Unstructured) bool {
				return strings.Contains(o.GetName(), "hub-certificate-approver")
			})
			h.Deployments.Items, h.Leases.Items = h.Deployments.Items[:2], h.Leases.Items[:1]
		},
		"a hub without pods": func(h *doctor.Hub) { h.Deployments.Items, h.Leases.Items = nil, h.Leases.Items[:1] },
		"a set that is new": func(h *doctor.Hub) {
			h.Sets.Items[0] = set("gold", "x")
			h.Sets.Items[0].CreationTimestamp = ago(time.Minute)
		},
		"a set before the first cluster": func(h *doctor.Hub) { h.Clusters.Items = nil },
		"clusters that are not all seen": func(h *doctor.Hub) { h.Sets.Items[0] = set("gold", "x"); h.Clusters.Seen = false },
		"sets that are not seen":         func(h *doctor.Hub) { h.Sets = doctor.List[v1beta1.ManagedClusterSet]{} },
		"a request that is new": func(h *doctor.Hub) {
			h.Requests.Items = []certificatesv1.CertificateSigningRequest{request("r", time.Minute)}
		},
		"a request that was just approved": func(h *doctor.Hub) {
			h.Requests.Items = []certificatesv1.CertificateSigningRequest{request("r", time.Hour, approved(time.Minute))}
		},
		"a webhook that answers":           func(h *doctor.Hub) { h.Webhooks = []doctor.Webhook{toService(true, true, true)} },
		"a webhook that could not be seen": func(h *doctor.Hub) { h.Webhooks = []doctor.Webhook{toService(false, false, false)} },
		"a webhook about pods of all groups": func(h *doctor.Hub) {
			h.Webhooks = []doctor.Webhook{toService(false, false, true)}
			h.Webhooks[0].Rules[0].Resources = []string{"pods"}
		},
		"a webhook that lets pass": func(h *doctor.Hub) {
			h.Webhooks = []doctor.Webhook{toService(false, false, true)}
			h.Webhooks[0].Fails = false
		},
		"an agent of the minor before, by one of two CAs": func(h *doctor.Hub) {
			says(h, "v1.0.9", "b", "a")
			h.Authorities = []string{registration.CertificateHash([]byte("a"))}
			unheard(h)
			h.Clusters.Items[0].Status.Conditions[0].Status = metav1.ConditionTrue
		},
		"an agent that is heard, and trusts another CA": func(h *doctor.Hub) {
			says(h, "v1.2.3", "b")
			h.Authorities = []string{registration.CertificateHash([]byte("a"))}
		},
		"an agent that says nonsense": func(h *doctor.Hub) {
			says(h, "$(reboot)")
			h.Clusters.Items[0].Status.ClusterClaims[1].Value = "sha256:x"
			h.Authorities = []string{registration.CertificateHash([]byte("a"))}
		},
		"a slow network": func(h *doctor.Hub) { h.Skew, h.SkewWithin = 20*time.Second, 15*time.Second },
		"rights given by one rule": func(h *doctor.Hub) {
			for _, o := range h.Rights.Items {
				if o.GetName() == "clusterhub:hub-apiserver" && o.GetKind() == "ClusterRole" {
					o.Object["rules"] = []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}},
						map[string]any{"nonResourceURLs": []any{"*"}, "verbs": []any{"*"}}}
				}
			}
		},
	} {
		h := healthy(t)
		change(h)
		if r := h.Check(); len(r.Findings) > 0 {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
}

func TestHub_ManyFindings(t *testing.T) {
	h := healthy(t)
	for i := range 5000 {
		h.Bindings.Items = append(h.Bindings.Items, binding(fmt.Sprintf("missing-%d", i)))
	}
	r := h.Check()
	if last := r.Findings[len(r.Findings)-1]; len(r.Findings) != 21 || last.Cause != "There are 4980 more like these." || last.ID != doctor.BoundSetMissing {
		t.Errorf("%d findings, the last is %+v", len(r.Findings), last)
	}
}
