// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
)

const (
	// fewKlusterlets is the number when the first single ones are created, and singleKlusterlets the number of those.
	fewKlusterlets, singleKlusterlets = 10, 3
	// tokensOfEach is the number of kubeconfigs that are minted for a Klusterlet.
	tokensOfEach = 2
	// minTokenLife has a margin for rounded times: less than mint.MinLifetime is rejected.
	minTokenLife = mint.MinLifetime + 10*time.Second
)

// measure measures everything while hub-operator runs.
func (i *installing) measure(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for sleep(ctx, time.Second) == nil {
			if err := i.runs(); err != nil {
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

func (i *installing) measureAll(ctx context.Context) error {
	if err := i.watchKlusterlets(ctx); err != nil {
		return err
	}
	if err := i.silence(ctx, 3*time.Second); err != nil {
		return err
	}
	i.result.Before = i.operator.rss()
	i.steps.step("Making %d Klusterlets, and then single ones", fewKlusterlets)
	if _, err := i.bring(ctx, fewKlusterlets); err != nil {
		return err
	}
	if err := i.single(ctx); err != nil {
		return err
	}
	i.steps.step("Making %d Klusterlets, and waiting until they are applied", i.options.klusterlets)
	all, err := i.bring(ctx, i.options.klusterlets)
	i.result.All = all
	if err != nil {
		return err
	}
	i.steps.step("Making single Klusterlets")
	if err := i.single(ctx); err != nil {
		return err
	}
	i.result.After, i.result.InAll = i.operator.rss(), i.made
	if err := i.rest(ctx); err != nil {
		return err
	}
	i.result.Lost = i.watch.losses()
	if i.options.tokenLife == 0 {
		return nil
	}
	return i.renewals(ctx)
}

// bring creates Klusterlets, and waits until they are applied and hub-operator sends no more requests.
func (i *installing) bring(ctx context.Context, count int) (*brought, error) {
	begun, cpu := time.Now(), i.cpuNow()
	r := &brought{Count: count, Before: i.made}
	if err := i.make(ctx, count); err != nil {
		return r, err
	}
	err := i.watch.await(ctx, &i.steps, i.made, factReadyToApply, factKlusterletApplied)
	r.Seconds, r.Applied = seconds(time.Since(begun)), i.watch.count(factReadyToApply, factKlusterletApplied)-r.Before
	if err != nil {
		return r, err
	}
	if err := i.silence(ctx, 2*time.Second); err != nil {
		return r, err
	}
	r.CPU = bySide(i.cpuNow().since(cpu)).per(count)
	here, there, err := i.requests(begun)
	r.OnManagement, r.OnManaged = here.counts(every), there.counts(every)
	r.Refused = append(here, there...).refused()
	return r, err
}

// single creates one Klusterlet after the other.
func (i *installing) single(ctx context.Context) error {
	together := &brought{Before: i.made}
	for range singleKlusterlets {
		one, err := i.bring(ctx, 1)
		if err != nil {
			return err
		}
		together.add(one)
	}
	i.result.Single = append(i.result.Single, together.each())
	return nil
}

func every(audited) bool { return true }

// requests returns hub-operator's requests since a time, to the management cluster and to all managed ones.
func (i *installing) requests(since time.Time) (here, there requests, err error) {
	here, err = i.onHere.requests(since)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range i.managed {
		more, err := m.audit.requests(since)
		if err != nil {
			return nil, nil, err
		}
		there = append(there, more...)
	}
	return here, there, nil
}

// silence waits until hub-operator writes nothing, and opens no watch.
func (i *installing) silence(ctx context.Context, quiet time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		begun := time.Now()
		for _, a := range i.audits() {
			if _, err := a.silence(limited, quiet); err != nil {
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

func (i *installing) audits() []*audit {
	all := []*audit{i.onHere}
	for _, m := range i.managed {
		all = append(all, m.audit)
	}
	return all
}

// rest measures hub-operator at rest.
func (i *installing) rest(ctx context.Context) error {
	i.steps.step("Watching for %s what hub-operator does at rest", i.options.rest)
	begun, cpu := time.Now(), i.cpuNow()
	if err := sleep(ctx, i.options.rest); err != nil {
		return err
	}
	i.result.RestSeconds = seconds(time.Since(begun))
	i.result.RestCores = bySide(i.cpuNow().since(cpu)).cores(time.Since(begun))
	here, there, err := i.requests(begun)
	i.result.RestOnManagement, i.result.RestOnManaged = here.counts(every), there.counts(every)
	return err
}

// renewals mints all tokens again at once, and waits until they are renewed.
func (i *installing) renewals(ctx context.Context) error {
	life := i.options.tokenLife
	number := tokensOfEach * i.made
	i.steps.step("Deleting %d minted kubeconfigs at once", number)
	begun := time.Now()
	names := []string{operatorv1.ExternalManagedKubeconfigRegistration, operatorv1.ExternalManagedKubeconfigWork}
	path := func(n int) string {
		return namespacesPath + "/" + agentNamespace(n/tokensOfEach) + "/secrets/" + names[n%tokensOfEach]
	}
	if err := i.writeEach(ctx, i.admins, number, http.MethodDelete, "", path, func(int) []byte { return nil }); err != nil {
		return err
	}
	var minted []tokenAsked
	if err := eventually(ctx, func() (err error) {
		minted, err = i.tokensSince(begun)
		if err == nil && len(minted) < number {
			err = fmt.Errorf("%d of %d tokens were minted anew", len(minted), number)
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
	if err := i.areShort(ctx, path(0)); err != nil {
		return err
	}
	first, last := ends(minted)
	end := last.Add(time.Duration(mint.RenewAt*float64(life)) + 10*time.Second)
	i.steps.step("Waiting for %s until the tokens are renewed", time.Until(end).Round(time.Second))
	if err := sleep(ctx, time.Until(end)); err != nil {
		return err
	}
	renewed, err := i.tokensSince(last.Add(time.Millisecond))
	i.result.Renewals = spreadOf(minted, renewed, life)
	i.result.Renewals.MintedIn = seconds(last.Sub(first))
	return err
}

// areShort verifies that the granted tokens have the expected lifetime.
func (i *installing) areShort(ctx context.Context, path string) error {
	var answer bytes.Buffer
	if err := i.admins[0].get(ctx, path, &answer); err != nil {
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
	if left := time.Until(expiration); left > i.options.tokenLife {
		return fmt.Errorf("a token lives for %s, and not for %s: does the managed cluster have MutatingAdmissionPolicies?", left, i.options.tokenLife)
	}
	return nil
}

// tokensSince returns the tokens that hub-operator was granted since a time.
func (i *installing) tokensSince(since time.Time) ([]tokenAsked, error) {
	_, there, err := i.requests(since)
	var asked []tokenAsked
	for _, one := range there {
		if one.ObjectRef.Subresource == "token" && one.ResponseStatus.Code < 300 {
			asked = append(asked, tokenAsked{one.ObjectRef.Namespace + "/" + one.ObjectRef.Name, one.At})
		}
	}
	return asked, err
}
