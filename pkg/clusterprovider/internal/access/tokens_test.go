// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

func withTTL(ttl time.Duration, created time.Time) *v1alpha1.AccessRequest {
	ar := request("a", "1")
	ar.CreationTimestamp = metav1.NewTime(created)
	ar.Spec.TTL = &duration.Duration{Duration: ttl}
	return ar
}

// TestDeleteOldTokens_OnlyOutlivingTheirRequest: a token cannot be revoked, but its ServiceAccount can be deleted. Requesters can write the
// Secret, and delete it.
func TestDeleteOldTokens_OnlyOutlivingTheirRequest(t *testing.T) {
	own := hub.Identity{Name: "p", Environment: "e"}
	now := time.Now()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		ttl time.Duration
		// until and expires are the times on the ServiceAccount and in the Secret; zero if not set.
		until, expires time.Duration
		gone           bool
		other          bool
	}{
		"a ttl that was reduced":               {ttl: time.Hour, until: day, expires: day, gone: true},
		"a ttl that was increased":             {ttl: 60 * day, until: day, expires: day},
		"another owner's account":              {ttl: time.Hour, until: day, expires: day, other: true},
		"a Secret that is gone":                {ttl: time.Hour, until: day, gone: true},
		"a Secret that was edited":             {ttl: time.Hour, until: day, expires: time.Minute, gone: true},
		"a cluster whose clock is ahead":       {ttl: time.Hour, until: time.Hour, expires: 2 * time.Hour},
		"an earlier version's":                 {ttl: time.Hour, expires: day, gone: true},
		"an earlier version's, as requested":   {ttl: time.Hour, expires: time.Hour},
		"an earlier version's, without Secret": {ttl: time.Hour},
	} {
		ar := withTTL(c.ttl, now)
		account := rights.ServiceAccount(own.Hash(ar))
		account.UID = "sa"
		if c.until > 0 {
			account.Annotations = map[string]string{"e.p.clusters.openmcp.cloud/tokens-until": now.Add(c.until).Format(time.RFC3339)}
		}
		if !c.other {
			account.Labels = own.AccessLabels(ar)
		}
		in := fake.NewClientBuilder().WithScheme(rights.Scheme).WithObjects(account).Build()
		to := &target.Target{Client: in, Owner: apply.Owner{Labels: own.AccessLabels(ar)}}
		server := fake.NewClientBuilder().WithScheme(hub.Scheme)
		if c.expires > 0 {
			server.WithObjects(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: ar.Namespace, Name: hub.SecretName(ar.Name), Labels: own.OwnLabels(),
					OwnerReferences: []metav1.OwnerReference{{UID: ar.UID, Controller: new(true)}}},
				Data: map[string][]byte{
					v1alpha1.SecretKeyCreationTimestamp:   []byte(unix(now)),
					v1alpha1.SecretKeyExpirationTimestamp: []byte(unix(now.Add(c.expires))),
				},
			})
		}
		r := New(own, nil, nil, server.Build(), &events.FakeRecorder{})
		s := &observation{own: own, now: now, ar: ar, closer: &closer{}}
		s.closer.answer.Secret, s.closer.answer.err = r.answers.Secret(t.Context(), hub.AnswerName(ar))
		if err := r.revokeOldTokens(t.Context(), s, to, own.Hash(ar)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := in.Get(t.Context(), client.ObjectKeyFromObject(account), &corev1.ServiceAccount{})
		if apierrors.IsNotFound(err) != c.gone {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// reached is a provider whose cluster is reached at its endpoint.
type reached struct{ clusterprovider.Provider }

func (reached) Connect(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	return &rest.Config{Host: "https://a:1"}, nil
}

// TestGrantToken_RecordsLatestExpiry: the fake cluster issues tokens that are valid for thousands of years, whatever is requested, like
// one whose clock is ahead. The record survives a grant, and a shorter ttl takes effect even if the Secret lies.
func TestGrantToken_RecordsLatestExpiry(t *testing.T) {
	own, now := hub.Identity{Name: "p", Environment: "e"}, time.Now()
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	ar := withTTL(24*time.Hour, now)
	ar.Generation, ar.Spec.Token, ar.Finalizers = 1, &v1alpha1.TokenConfig{}, []string{oursFinalizer}
	cluster.Status.Phase = v1alpha1.StatusPhaseReady
	in := fake.NewClientBuilder().WithScheme(rights.Scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.TokenMinterNamespace}}).Build()
	to := &target.Target{Client: in, Owner: apply.Owner{Labels: own.AccessLabels(ar), Origin: own.Origin(ar, cluster)}}
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).Build()
	r := New(own, reached{}, server, server, &events.FakeRecorder{})
	r.reach = func(*rest.Config, *v1alpha1.AccessRequest, *v1alpha1.Cluster) (*target.Target, error) { return to, nil }
	account := rights.ServiceAccount(own.Hash(ar))
	// gives grants access, and returns the recorded remaining validity of tokens.
	gives := func() time.Duration {
		t.Helper()
		if _, err := r.grant(t.Context(), r.looksClosely(t.Context(), ar, cluster)); err != nil {
			t.Fatal(err)
		}
		if err := in.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
			t.Fatal(err)
		}
		ar.Status.Phase = v1alpha1.REQUEST_GRANTED
		hub.SetCondition(&ar.Status.Status, ar.Generation, metav1.Condition{Type: clusterprovider.ConditionAccess, Status: metav1.ConditionTrue})
		until, _ := time.Parse(time.RFC3339, account.Annotations["e.p.clusters.openmcp.cloud/tokens-until"])
		return until.Sub(now).Round(time.Hour)
	}
	if got := gives(); got != 24*time.Hour {
		t.Fatalf("tokens are recorded as valid for %s", got)
	}
	if do, _, _ := r.looksClosely(t.Context(), ar, cluster).inPlace(); do != keep {
		t.Error("a cluster whose clock is ahead has its access renewed at each look")
	}
	account.Annotations["kept"] = "this"
	if err := in.Update(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	ar.Spec.TTL.Duration, ar.Generation = 24*time.Hour-10*time.Second, 2
	if got := gives(); got != 24*time.Hour || account.Annotations["kept"] == "" {
		t.Errorf("a ttl that is hardly shorter: tokens end, or the record goes: %s, %v", got, account.Annotations)
	}

	secret, err := r.answers.Secret(t.Context(), hub.AnswerName(ar))
	if err != nil {
		t.Fatal(err)
	}
	secret.Annotations["e.p.clusters.openmcp.cloud/tokens-until"] = now.Format(time.RFC3339)
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	ar.Spec.TTL.Duration, ar.Generation = time.Hour, 3
	if do, _, _ := r.looksClosely(t.Context(), ar, cluster).inPlace(); do != grant {
		t.Error("a Secret that lies hides a shorter ttl")
	}
	if got := gives(); got != time.Hour || account.Annotations["kept"] != "" {
		t.Errorf("a shorter ttl leaves the ServiceAccount: %s, %v", got, account.Annotations)
	}
}

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
