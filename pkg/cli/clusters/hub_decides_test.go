// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/clustercertificates"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	clusterfake "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/fake"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// TestAccept_MatchesDecisionOfHub verifies that the command and the hub agree: an admin accepts a cluster by the command, and then the hub
// decides on the pending request. What the command shows, rejects and warns about must match the hub's decision.
func TestAccept_MatchesDecisionOfHub(t *testing.T) {
	agentUser := registration.ClusterUser("c1", "agent")
	decided := func(as certificatesv1.RequestConditionType) func(*certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: as, Status: "True"}}
		}
	}
	const stranger = "neither the agent that the request is for nor a bootstrap identity"
	for name, test := range map[string]struct {
		user   string
		change func(*certificatesv1.CertificateSigningRequest)
		// key returns the key that the cluster names as its agent's, given the key of the request.
		key func(string) string
		// requesters is the flag of the command, identities the one of the hub.
		requesters, identities []string

		// hidden is a request that neither shows: it belongs to another cluster, or is already decided. approved is a request that the hub approves.
		// left is why the hub does not.
		hidden, approved bool
		left             string
		// refused and warned are the texts that the command prints: before the acceptance, and after an acceptance with --skip-approve-check.
		refused, warned string
	}{
		"a bootstrap token's":                  {approved: true},
		"clusteradm's":                         {user: registration.BootstrapServiceAccount, approved: true},
		"of an identity that the hub is told":  {user: "joiner", requesters: []string{"joiner"}, identities: []string{"joiner"}, approved: true, warned: "--bootstrap-identities"},
		"of one that only the command is told": {user: "joiner", requesters: []string{"joiner"}, left: stranger, warned: "comes from joiner, so the hub leaves it to you unless --bootstrap-identities"},
		"of a stranger":                        {user: "eve", left: stranger, refused: `comes from "eve"`, warned: "unless --bootstrap-identities"},
		"of one whom the hub cannot be told":   {user: "system:admin", left: stranger, refused: `comes from "system:admin"`, warned: "comes from system:admin, so the hub leaves it to you: "},
		"an agent's that renews": {user: agentUser, change: func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Groups = []string{registration.ManagedClustersGroup, registration.ClusterGroup("c1"), "system:authenticated"}
		}, approved: true, refused: `comes from "` + agentUser},
		"one that says so": {user: agentUser, left: stranger, refused: `comes from "` + agentUser, warned: "so the hub leaves it to you: "},

		"approved":                      {change: decided(certificatesv1.CertificateApproved), hidden: true},
		"denied":                        {change: decided(certificatesv1.CertificateDenied), hidden: true},
		"failed":                        {change: decided(certificatesv1.CertificateFailed), hidden: true},
		"signed":                        {change: func(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = []byte("x") }, hidden: true},
		"with a condition of another's": {change: decided("Looked"), approved: true},
		"for another signer":            {change: func(r *certificatesv1.CertificateSigningRequest) { r.Spec.SignerName = "example.com/x" }, hidden: true},
		"for a server": {change: func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
		}, left: `it asks for the usage "server auth"`},

		"for the key that the cluster names": {key: func(own string) string { return own }, approved: true},
		"for that key in capitals":           {key: strings.ToUpper, approved: true},
		"for another key": {key: func(own string) string { return strings.Repeat("a", len(own)) }, left: "another key than the agent of the cluster has",
			refused: "was created with the key with SHA-256 aaaa", warned: "is from another agent than the one that created the cluster"},
		"for what is no key": {key: func(own string) string { return own[1:] }, left: "created with an invalid key",
			refused: "was created with a value that is not the SHA-256 of a key: ", warned: "created with a value that is not the SHA-256 of a key: "},
	} {
		t.Run(name, func(t *testing.T) {
			request := newCSR(t, "agent", cmp.Or(test.user, tokenUser))
			key := keyOf(t, request)
			request.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
			if test.change != nil {
				test.change(request)
			}
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "uid1",
				CreationTimestamp: metav1.NewTime(request.CreationTimestamp.Add(-time.Minute))}}
			if test.key != nil {
				cluster.Annotations = map[string]string{registration.AnnotationAgentKey: test.key(key)}
			}
			accept := func(skip bool) (*acceptance, *clusterv1.ManagedCluster, string, error) {
				opts, out := newCaptured()
				o := &acceptOptions{Options: opts, requesters: test.requesters, skipCheck: skip}
				h := &kit.HubClient{Kube: fake.NewClientset(request.DeepCopy()), Clusters: clusterfake.NewClientset(cluster.DeepCopy())}
				a, err := o.accept(t.Context(), h, "c1")
				after, getErr := h.Clusters.ClusterV1().ManagedClusters().Get(t.Context(), "c1", metav1.GetOptions{})
				if getErr != nil {
					t.Fatal(getErr)
				}
				return a, after, out.String(), err
			}
			if _, _, _, err := accept(false); (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("the command fails with %v, want %q", err, test.refused)
			}
			a, accepted, out, err := accept(true)
			if err != nil {
				t.Fatal(err)
			}
			if shown := len(a.Requests) == 1; shown == test.hidden || shown && a.Requests[0].NotAnAgents == "" && a.Requests[0].Key != key {
				t.Errorf("the command shows %v", a.Requests)
			}
			if _, warning, _ := strings.Cut(out, "Warning: "); (warning != "") != (test.warned != "") || !strings.Contains(warning, test.warned) {
				t.Errorf("the command warns of %q, want %q", warning, test.warned)
			}
			approved, said := decidedByHub(t, accepted, request, test.identities)
			if approved != test.approved || (said == "") != test.hidden || !strings.Contains(said, test.left) {
				t.Errorf("approved by the hub: %t, want %t; it says %q, want %q", approved, test.approved, said, test.left)
			}
			if !test.hidden && !strings.Contains(said, a.Requests[0].NotAnAgents) {
				t.Errorf("the command says of it %q, and the hub %q", a.Requests[0].NotAnAgents, said)
			}
		})
	}
}

// TestApprove_ReportsOtherDecision verifies that a request that another admin denied concurrently is not reported as approved.
func TestApprove_ReportsOtherDecision(t *testing.T) {
	for as, want := range map[certificatesv1.RequestConditionType]string{
		certificatesv1.CertificateApproved: "", certificatesv1.CertificateDenied: "has since been denied", certificatesv1.CertificateFailed: "has failed",
	} {
		made := newCSR(t, "agent", tokenUser)
		made.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: as, Status: "True"}}
		h := &kit.HubClient{Kube: fake.NewClientset(made)}
		err := approveRequest(t.Context(), h, "c1", request{Name: made.Name, Key: keyOf(t, made)})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", as, err, want)
		}
	}
}

// decidedByHub has the hub decide on a request of a cluster that has just been accepted.
func decidedByHub(t *testing.T, cluster *clusterv1.ManagedCluster, request *certificatesv1.CertificateSigningRequest, identities []string) (approved bool, said string) {
	t.Helper()
	cluster.ResourceVersion, request.ResourceVersion = "", ""
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, registration.AnnotationAcceptedAt, time.Now().UTC().Format(time.RFC3339))
	// pkg/controllers/registration/clusteracceptance stores this for an accepted cluster.
	kept := record.New("c1")
	record.Record{
		Driver: "csr", UID: cluster.UID, Granted: time.Now(),
		Key: agentcsr.PlannedKey(cluster.Annotations), Requesters: cluster.Annotations[registration.AnnotationRequesters],
	}.Write(kept)
	scheme := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(clusterv1.AddToScheme, certificatesv1.AddToScheme, corev1.AddToScheme)
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, request, kept).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, _ string, obj client.Object, _ ...client.SubResourceUpdateOption) error {
			approved = agentcsr.Approval(obj.(*certificatesv1.CertificateSigningRequest)) != nil
			return nil
		},
	})
	if err := clustercertificates.AddIndexes(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	c, recorder := builder.Build(), events.NewFakeRecorder(10)
	r := clustercertificates.New(c, c, recorder, clustercertificates.Options{BootstrapUsers: identities, MaxLifetime: 365 * 24 * time.Hour})
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(request)}); err != nil {
		t.Fatal(err)
	}
	close(recorder.Events)
	return approved, strings.Join(slices.Collect(func(yield func(string) bool) {
		for event := range recorder.Events {
			if !yield(event) {
				return
			}
		}
	}), "\n")
}

// indexer gives a fake client the indexes of a cache.
type indexer struct{ *ctrlfake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(obj, field, extract)
	return nil
}
