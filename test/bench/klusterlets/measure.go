// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package klusterlets measures many detached Klusterlets on one management cluster: (n).
package klusterlets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

const (
	// fewKlusterlets is the number when the first single ones are created, and singleKlusterlets the number of those.
	fewKlusterlets, singleKlusterlets = 10, 3
	// tokensOfEach is the number of kubeconfigs that are minted for a Klusterlet.
	tokensOfEach = 2
	// MinTokenLife is the shortest lifetime of tokens that can be measured. It has a margin for rounded times: less than mint.MinLifetime is rejected.
	MinTokenLife = mint.MinLifetime + 10*time.Second
)

// measure measures everything while hub-operator runs.
func (i *env) measure(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for kit.Sleep(ctx, time.Second) == nil {
			if err := i.checkRunning(); err != nil {
				cancel(err)
			}
		}
	}()
	err := i.measureAll(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (i *env) measureAll(ctx context.Context) error {
	if err := i.watchKlusterlets(ctx); err != nil {
		return err
	}
	if err := i.silence(ctx, 3*time.Second); err != nil {
		return err
	}
	i.result.Before = i.operator.RSS()
	i.Steps.Step("Making %d Klusterlets, and then single ones", fewKlusterlets)
	if _, err := i.createBatch(ctx, fewKlusterlets); err != nil {
		return err
	}
	if err := i.measureSingle(ctx); err != nil {
		return err
	}
	i.Steps.Step("Making %d Klusterlets, and waiting until they are applied", i.Options.Klusterlets)
	all, err := i.createBatch(ctx, i.Options.Klusterlets)
	i.result.All = all
	if err != nil {
		return err
	}
	i.Steps.Step("Making single Klusterlets")
	if err := i.measureSingle(ctx); err != nil {
		return err
	}
	i.result.After, i.result.InAll = i.operator.RSS(), i.created
	if err := i.measureRest(ctx); err != nil {
		return err
	}
	i.result.Lost = i.watch.TakeLost()
	if i.Options.TokenLife == 0 {
		return nil
	}
	return i.measureRenewals(ctx)
}

// createBatch creates Klusterlets, and waits until they are applied and hub-operator sends no more requests.
func (i *env) createBatch(ctx context.Context, count int) (*batch, error) {
	begun, cpu := time.Now(), i.CPUNow()
	r := &batch{Count: count, Before: i.created}
	if err := i.create(ctx, count); err != nil {
		return r, err
	}
	err := i.watch.Await(ctx, &i.Steps, i.created, factReadyToApply, factKlusterletApplied)
	r.Seconds, r.Applied = kit.Seconds(time.Since(begun)), i.watch.Count(factReadyToApply, factKlusterletApplied)-r.Before
	if err != nil {
		return r, err
	}
	if err := i.silence(ctx, 2*time.Second); err != nil {
		return r, err
	}
	r.CPU = bySide(i.CPUNow().Since(cpu)).Per(count)
	here, there, err := i.requests(begun)
	r.OnManagement, r.OnManaged = here.Counts(anyRequest), there.Counts(anyRequest)
	r.Refused = append(here, there...).Refused()
	return r, err
}

// measureSingle creates one Klusterlet after the other.
func (i *env) measureSingle(ctx context.Context) error {
	together := &batch{Before: i.created}
	for range singleKlusterlets {
		one, err := i.createBatch(ctx, 1)
		if err != nil {
			return err
		}
		together.add(one)
	}
	i.result.Single = append(i.result.Single, together.each())
	return nil
}

func anyRequest(audit.Request) bool { return true }

// requests returns hub-operator's requests since a time, to the management cluster and to all managed ones.
func (i *env) requests(since time.Time) (here, there audit.Requests, err error) {
	here, err = i.onManagement.Since(since)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range i.managed {
		more, err := m.audit.Since(since)
		if err != nil {
			return nil, nil, err
		}
		there = append(there, more...)
	}
	return here, there, nil
}

// silence waits until hub-operator writes nothing, and opens no watch.
func (i *env) silence(ctx context.Context, quiet time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		begun := time.Now()
		for _, a := range i.audits() {
			if _, err := a.AwaitSilence(limited, quiet); err != nil {
				return fmt.Errorf("hub-operator does not come to rest: %w", err)
			}
		}
		// These requests were sent to one cluster while waiting for another.
		here, there, err := i.requests(begun)
		if err != nil || len(here)+len(there) == 0 {
			return err
		}
	}
}

func (i *env) audits() []*audit.Log {
	all := []*audit.Log{i.onManagement}
	for _, m := range i.managed {
		all = append(all, m.audit)
	}
	return all
}

// measureRest measures hub-operator at rest.
func (i *env) measureRest(ctx context.Context) error {
	i.Steps.Step("Watching for %s what hub-operator does at rest", i.Options.Rest)
	begun, cpu := time.Now(), i.CPUNow()
	if err := kit.Sleep(ctx, i.Options.Rest); err != nil {
		return err
	}
	i.result.RestSeconds = kit.Seconds(time.Since(begun))
	i.result.RestCores = bySide(i.CPUNow().Since(cpu)).Cores(time.Since(begun))
	here, there, err := i.requests(begun)
	i.result.RestOnManagement, i.result.RestOnManaged = here.Counts(anyRequest), there.Counts(anyRequest)
	return err
}

// measureRenewals mints all tokens again at once, and waits until they are renewed.
func (i *env) measureRenewals(ctx context.Context) error {
	life := i.Options.TokenLife
	number := tokensOfEach * i.created
	i.Steps.Step("Deleting %d minted kubeconfigs at once", number)
	begun := time.Now()
	names := []string{operatorv1.ExternalManagedKubeconfigRegistration, operatorv1.ExternalManagedKubeconfigWork}
	path := func(n int) string {
		return kit.NamespacesPath + "/" + agentNamespace(n/tokensOfEach) + "/secrets/" + names[n%tokensOfEach]
	}
	if err := i.WriteEach(ctx, i.admins, number, http.MethodDelete, "", path, func(int) []byte { return nil }); err != nil {
		return err
	}
	var minted []grantedToken
	if err := kit.Eventually(ctx, func() (err error) {
		minted, err = i.tokensSince(begun)
		if err == nil && len(minted) < number {
			err = fmt.Errorf("%d of %d tokens were renewed", len(minted), number)
		}
		return err
	}); err != nil {
		return err
	}
	if err := i.silence(ctx, 2*time.Second); err != nil {
		return err
	}
	minted, err := i.tokensSince(begun)
	if err != nil {
		return err
	}
	if err := i.checkLifetime(ctx, path(0)); err != nil {
		return err
	}
	first, last := ends(minted)
	end := last.Add(time.Duration(mint.RenewAt*float64(life)) + 10*time.Second)
	i.Steps.Step("Waiting for %s until the tokens are renewed", time.Until(end).Round(time.Second))
	if err := kit.Sleep(ctx, time.Until(end)); err != nil {
		return err
	}
	renewed, err := i.tokensSince(last.Add(time.Millisecond))
	i.result.Renewals = spreadOf(minted, renewed, life)
	i.result.Renewals.MintedIn = kit.Seconds(last.Sub(first))
	return err
}

// checkLifetime verifies that the granted tokens have the expected lifetime.
func (i *env) checkLifetime(ctx context.Context, path string) error {
	var answer bytes.Buffer
	if err := i.admins[0].Get(ctx, path, &answer); err != nil {
		return err
	}
	var secret struct{ Data map[string][]byte }
	if err := json.Unmarshal(answer.Bytes(), &secret); err != nil {
		return err
	}
	expiration, err := time.Parse(time.RFC3339, string(secret.Data[mint.ExpirationKey]))
	if err != nil {
		return err
	}
	if left := time.Until(expiration); left > i.Options.TokenLife {
		return fmt.Errorf("a token lives for %s, and not for %s: does the managed cluster have MutatingAdmissionPolicies?", left, i.Options.TokenLife)
	}
	return nil
}

// tokensSince returns the tokens that hub-operator was granted since a time.
func (i *env) tokensSince(since time.Time) ([]grantedToken, error) {
	_, there, err := i.requests(since)
	var asked []grantedToken
	for _, one := range there {
		if one.ObjectRef.Subresource == "token" && one.ResponseStatus.Code < 300 {
			asked = append(asked, grantedToken{one.ObjectRef.Namespace + "/" + one.ObjectRef.Name, one.At})
		}
	}
	return asked, err
}
