// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// truster trusts all issuers except those that it rejects.
type truster struct {
	clusterprovider.Provider
	refuses error
	asked   []string
	// before is called before anything else.
	before func()
}

func (f *truster) Connect(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	return &rest.Config{Host: "https://blue"}, nil
}

func (f *truster) TrustOIDC(_ context.Context, _ *v1alpha1.Cluster, providers []v1alpha1.OIDCProviderConfig) error {
	if f.before != nil {
		f.before()
	}
	f.asked = nil
	for _, provider := range providers {
		f.asked = append(f.asked, provider.Issuer)
	}
	return f.refuses
}

func TestTrust_WaitsForRestart(t *testing.T) {
	ar := byIssuer("corp", "https://corp", nil, "view")
	r := newRefusing(t, ar)
	r.truster.refuses = clusterprovider.NotYet{Message: "it is restarted"}
	err := r.gives(ar)
	if hub.ReasonOf(err, "") != hub.ReasonClusterNotReady || err.Error() != "it is restarted" {
		t.Fatalf("%v", err)
	}
	other := byIssuer("other", "https://other", nil, "view")
	_ = r.gives(other)
	if !slices.Equal(r.trusted(), []string{"https://corp", "https://other"}) {
		t.Errorf("concurrently, another request makes the cluster trust %v", r.trusted())
	}
	for _, failure := range []error{err, fmt.Errorf("revoking access: %w", err)} {
		ar.ResourceVersion = ""
		server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(ar).WithStatusSubresource(ar).Build()
		r.answers = answer.New(r.Identity, server, server, &events.FakeRecorder{})
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(ar), ar); err != nil {
			t.Fatal(err)
		}
		result, err := r.failed(t.Context(), ar.DeepCopy(), &observation{own: r.Identity, ar: ar}, decision{}.explain(failure))
		said := ar.Status.Conditions[0]
		if err != nil || result.RequeueAfter != hub.RetryInterval || said.Reason != "ClusterNotReady" || said.Message != failure.Error() {
			t.Errorf("%+v, %v: %+v", result, err, said)
		}
	}
}

func TestNextCheck_BeforeRenewalWithJitter(t *testing.T) {
	now := time.Now()
	seen := map[time.Duration]bool{}
	for i := range 200 {
		look := nextCheck(request("a", types.UID(strconv.Itoa(i))), now, now.Add(time.Hour))
		if look < clusterprovider.ResyncInterval || look > 2*clusterprovider.ResyncInterval {
			t.Errorf("looks again after %s", look)
		}
		seen[look.Truncate(time.Second)] = true
	}
	if len(seen) < 50 {
		t.Errorf("200 looks are in %d different seconds", len(seen))
	}
	ar := request("a", "1")
	if one, two := nextCheck(ar, now, time.Time{}), nextCheck(ar, now.Add(time.Second), time.Time{}); one == two {
		t.Errorf("all looks are %s apart", one)
	}
	if look := nextCheck(ar, now, now.Add(time.Minute)); look != time.Minute {
		t.Errorf("a renewal in a minute waits for %s", look)
	}
	if look := nextCheck(ar, now, now.Add(-time.Minute)); look <= 0 || look > time.Minute {
		t.Errorf("a renewal that is overdue comes after %s", look)
	}
	if look := nextCheck(ar, now, time.Time{}); look < clusterprovider.ResyncInterval {
		t.Errorf("access that is never renewed is checked after %s", look)
	}
}
