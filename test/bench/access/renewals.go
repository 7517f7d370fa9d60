// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

const (
	// tokenLife is the lifetime of all tokens, the shortest that clusters grant. The provider renews each at some time from 75 % to 80 % of it, which
	// is renewalTime.
	tokenLife    = time.Hour
	renewalTime  = tokenLife * 5 / 100
	renewalParts = 12
)

// renewalRun is the distribution over time of renewals of tokens that were created at the same time.
type renewalRun struct {
	renewed, early, late int
	// queued is the largest number that waited at the same time. If many are due at once, most of them wait.
	queued int
	// parts are the numbers in each part of the time.
	parts   []int
	traffic *traffic
}

// measureRenewals makes the provider renew all tokens. To trigger that, the Secrets are changed so that the tokens seem to be older, with a lifetime of an
// hour. The provider reads them when it starts.
func (a *env) measureRenewals(ctx context.Context, g *grantRun) error {
	lead := 30*time.Second + 3*g.restarting
	a.Steps.Step("Making %d tokens older, and waiting for %s until they are renewed", g.requests, (lead + renewalTime).Round(time.Second))
	begin := time.Now().Add(lead).Truncate(time.Second)
	created := begin.Add(-tokenLife * 75 / 100)
	seconds := func(t time.Time) []byte { return []byte(strconv.FormatInt(t.Unix(), 10)) }
	body := kit.MustJSON(map[string]any{"data": map[string][]byte{
		v1alpha1.SecretKeyCreationTimestamp: seconds(created), v1alpha1.SecretKeyExpirationTimestamp: seconds(created.Add(tokenLife)),
	}})
	secrets, err := a.admins[0].List(ctx, secretsPath+"?labelSelector="+v1alpha1.ManagedByLabel+"="+providerName)
	if err != nil {
		return err
	}
	if len(secrets.Items) != g.requests {
		return fmt.Errorf("%d Secrets for %d AccessRequests", len(secrets.Items), g.requests)
	}
	a.provider.Stop()
	if err := a.writeAsAdmin(ctx, g.requests, http.MethodPatch, kit.MergePatch,
		func(i int) string { return secretsPath + "/" + secrets.Items[i].Metadata.Name }, func(int) []byte { return body }); err != nil {
		return err
	}
	if err := a.provider.start(ctx); err != nil {
		return err
	}
	if err := a.provider.awaitWork(ctx, g.requests); err != nil {
		return err
	}
	if time.Now().After(begin) {
		fmt.Printf("    making the tokens older has taken more than %s, the renewals would say nothing\n", lead)
		return nil
	}
	begun, cpu := time.Now(), a.CPUNow()
	// This is a little longer, for those that are late because the machine is busy.
	r := &renewalRun{parts: make([]int, renewalParts)}
	for end := begin.Add(renewalTime + renewalTime/renewalParts); time.Now().Before(end); {
		w, err := a.provider.read(ctx)
		if err != nil {
			return err
		}
		r.queued = max(r.queued, w.queued)
		if err := kit.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	g.renewing = r
	r.traffic, err = a.trafficSince(ctx, begun, cpu)
	if err != nil {
		return err
	}
	for _, one := range r.traffic.provider {
		if !one.IsWrite() || one.ObjectRef.Resource != "secrets" || one.ObjectRef.Namespace != teams || one.ResponseStatus.Code >= 400 {
			continue
		}
		r.renewed++
		switch part := int(one.At.Sub(begin) / (renewalTime / renewalParts)); {
		case one.At.Before(begin):
			r.early++
		case part >= renewalParts:
			r.late++
		default:
			r.parts[part]++
		}
	}
	return nil
}
