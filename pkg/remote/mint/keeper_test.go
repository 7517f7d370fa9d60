// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestEnsure_MintsOnce(t *testing.T) {
	w := newWorld(t)
	if state := w.mustEnsure(); !state.Minted || !state.Expiration.Equal(start.Add(time.Hour)) {
		t.Errorf("%+v", state)
	}
	w.did("at first", 1, 1)
	secret := w.secret()
	want := map[string]string{
		"kubeconfig": string(w.wanted.Source.minted), "token": grantedToken + "-uid-1-1", "expiration": "2026-01-01T01:00:00Z",
		"serviceaccount_namespace": "agent", "serviceaccount_name": "k-work-sa", "serviceaccount_uid": "uid-1",
	}
	for key, value := range want {
		if got := string(secret.Data[key]); got != value {
			t.Errorf("%s is %q, not %q", key, got, value)
		}
	}
	if len(secret.Data) != len(want) || secret.Labels["of"] != "k" || secret.Type != corev1.SecretTypeOpaque {
		t.Errorf("the Secret is %v, %v", secret.Labels, secret.Type)
	}
	for range 20 {
		if state := w.mustEnsure(); state.Minted {
			t.Error("it was minted again")
		}
	}
	w.did("after that", 0, 0)
	// Another process has the same state.
	w.keeper = &Minter{Client: w.client, Clock: w.clock}
	w.mustEnsure()
	w.did("after a restart", 0, 0)
}

// TestEnsure_RenewsAtFourFifthsOfGrantedLifetime verifies the time of the renewal, whatever lifetime was requested.
func TestEnsure_RenewsAtFourFifthsOfGrantedLifetime(t *testing.T) {
	for _, granted := range []time.Duration{MinLifetime, time.Hour, 24 * time.Hour, DefaultLifetime, 8640 * time.Hour} {
		t.Run(granted.String(), func(t *testing.T) {
			w := newWorld(t)
			w.granted = granted
			granted = min(granted, DefaultLifetime)
			w.mustEnsure()
			w.did("at first", 1, 1)
			for begin := w.clock.Now(); ; {
				state := w.mustEnsure()
				if passed := w.clock.Now().Sub(begin); state.Minted {
					if part := float64(passed) / float64(granted); part < RenewFrom-0.001 || part > RenewAt+0.001 {
						t.Errorf("it was renewed after %.3f of its lifetime", part)
					}
					break
				} else if passed > granted {
					t.Fatal("it was not renewed")
				}
				if wait := state.Next.Sub(w.clock.Now()); wait > maxEnsureInterval || wait <= 0 {
					t.Errorf("the next call is after %s", wait)
				}
				w.clock.SetTime(state.Next)
			}
			w.did("in its time", 1, 1)
		})
	}
}

// TestEnsure_RenewalsAreSpread: 200 tokens that were minted at one moment are renewed one after the other, deterministically.
func TestEnsure_RenewalsAreSpread(t *testing.T) {
	w := newWorld(t)
	const many, parts = 200, 10
	var each [parts]int
	first, last := start.Add(42*time.Minute), start.Add(48*time.Minute)
	for i := range many {
		w.wanted.Secret.Namespace = fmt.Sprintf("cluster-%d-open-cluster-management-agent", i)
		next := w.mustEnsure().Next
		if next.Before(first) || next.After(last) {
			t.Errorf("%d is renewed at %s", i, next)
			continue
		}
		each[int(float64(parts)*float64(next.Sub(first))/float64(last.Sub(first)+1))]++
	}
	for _, n := range each {
		if n < many/parts/3 || n > many/parts*2 {
			t.Errorf("the renewals in each tenth of the time: %v", each)
			break
		}
	}
}

// TestEnsure_RenewsAtOnce verifies that a token is renewed at once if it is not the required one any more.
func TestEnsure_RenewsAtOnce(t *testing.T) {
	const ca = `certificate-authority-data: $CA`
	changed := func(change func(*corev1.Secret)) func(*world) {
		return func(w *world) {
			secret := w.secret()
			change(secret)
			if err := w.client.Update(w.t.Context(), secret); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	sourced := func(cluster string) func(*world) {
		return func(w *world) { w.wanted.Source = source(w.t, cluster, goodUser) }
	}
	for name, test := range map[string]struct {
		change func(*world)
		asked  int
		writes int
	}{
		"nothing":                       {func(*world) {}, 0, 0},
		"another UID":                   {func(w *world) { w.wanted.Account.UID = "uid-2" }, 1, 1},
		"another name":                  {func(w *world) { w.wanted.Account.Name = "x" }, 1, 1},
		"another namespace":             {func(w *world) { w.wanted.Account.Namespace = "x" }, 1, 1},
		"another server":                {sourced(`server: "https://api.example", ` + ca), 1, 1},
		"another CA":                    {sourced(`server: "https://api.example:6443", certificate-authority-data: $TWICE`), 1, 1},
		"another name of the server":    {sourced(goodCluster + `, tls-server-name: x`), 1, 1},
		"another proxy":                 {sourced(goodCluster + `, proxy-url: "http://x"`), 1, 1},
		"other credentials of an admin": {func(w *world) { w.wanted.Source = source(w.t, goodCluster, goodUser+"x") }, 0, 0},
		"deleted": {func(w *world) {
			if err := w.client.Delete(w.t.Context(), w.secret()); err != nil {
				w.t.Fatal(err)
			}
		}, 1, 1},
		"another token":       {changed(func(s *corev1.Secret) { s.Data["token"] = []byte("x") }), 1, 1},
		"no token":            {changed(func(s *corev1.Secret) { delete(s.Data, "token") }), 1, 1},
		"another kubeconfig":  {changed(func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("x") }), 1, 1},
		"another expiration":  {changed(func(s *corev1.Secret) { s.Data["expiration"] = []byte("2036-01-01T00:00:00Z") }), 1, 1},
		"no expiration":       {changed(func(s *corev1.Secret) { s.Data["expiration"] = nil }), 1, 1},
		"another time":        {changed(func(s *corev1.Secret) { s.Annotations[MintedAtAnnotation] = "2020-01-01T00:00:00Z" }), 1, 1},
		"no time":             {changed(func(s *corev1.Secret) { delete(s.Annotations, MintedAtAnnotation) }), 1, 1},
		"no digest":           {changed(func(s *corev1.Secret) { delete(s.Annotations, DigestAnnotation) }), 1, 1},
		"one more key":        {changed(func(s *corev1.Secret) { s.Data["x"] = []byte("x") }), 0, 1},
		"no label":            {changed(func(s *corev1.Secret) { s.Labels = nil }), 0, 1},
		"a label of others":   {changed(func(s *corev1.Secret) { s.Labels["x"] = "x" }), 0, 0},
		"it cannot change":    {changed(func(s *corev1.Secret) { s.Immutable = new(true) }), 0, 2},
		"one more owner":      {func(w *world) { w.wanted.OwnerReferences = []metav1.OwnerReference{{UID: "u", Name: "k"}} }, 0, 1},
		"one more annotation": {func(w *world) { w.wanted.Annotations = map[string]string{"x": "y"} }, 0, 1},
		"the clock was ahead": {func(w *world) { w.clock.SetTime(start.Add(-time.Hour)) }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mustEnsure()
			test.change(w)
			w.asked, w.writes = 0, 0
			if state := w.mustEnsure(); state.Minted != (test.asked > 0) {
				t.Errorf("it says %+v", state)
			}
			w.did("then", test.asked, test.writes)
			w.mustEnsure()
			w.did("and after it", 0, 0)
		})
	}
}

// TestEnsure_RejectsImplausibleResponse: no part of an implausible response is written, and the request is not repeated at once.
func TestEnsure_RejectsImplausibleResponse(t *testing.T) {
	ends := func(at time.Time) func(*authenticationv1.TokenRequest) error {
		return func(r *authenticationv1.TokenRequest) error {
			r.Status.ExpirationTimestamp = metav1.NewTime(at)
			return nil
		}
	}
	token := func(token string) func(*authenticationv1.TokenRequest) error {
		return func(r *authenticationv1.TokenRequest) error {
			r.Status.Token = token
			return nil
		}
	}
	for name, test := range map[string]struct {
		answer func(*authenticationv1.TokenRequest) error
		want   string
	}{
		"refused":                  {func(*authenticationv1.TokenRequest) error { return errors.New("forbidden") }, ReasonTokenNotGranted},
		"none":                     {token(""), ReasonTokenInvalid},
		"huge":                     {token(strings.Repeat(grantedToken, 10_000)), ReasonTokenInvalid},
		"more headers":             {token(grantedToken + "\r\nImpersonate-User: admin"), ReasonTokenInvalid},
		"no end":                   {ends(time.Time{}), ReasonTokenInvalid},
		"ended":                    {ends(start.Add(-time.Second)), ReasonTokenInvalid},
		"ends now":                 {ends(start), ReasonTokenInvalid},
		"in a thousand years":      {ends(start.AddDate(1000, 0, 0)), ReasonTokenInvalid},
		"in more than years":       {ends(time.Unix(math.MaxInt64/2, 0)), ReasonTokenInvalid},
		"in ten seconds":           {ends(start.Add(10 * time.Second)), ReasonTokenTooShort},
		"ten seconds, it says too": {func(r *authenticationv1.TokenRequest) error { r.Spec.ExpirationSeconds = new(int64(10)); return nil }, ReasonTokenTooShort},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.answer = test.answer
			state, err := w.ensure()
			if reasonOf(err) != test.want || state.Usable || state.Minted {
				t.Errorf("%+v: %v, want %s", state, err, test.want)
			}
			w.did("then", 1, 0)
			if _, again := w.ensure(); again != err {
				t.Errorf("it says %v after %v", again, err)
			}
			w.did("at once", 0, 0)
			w.answer = nil
			w.clock.SetTime(state.Next)
			w.mustEnsure()
			w.did("later", 1, 1)
		})
	}
}

// TestAttack_InvalidUID: the cluster returns the UID of a ServiceAccount. It is stored in the Secret, and must not carry anything else.
func TestAttack_InvalidUID(t *testing.T) {
	for name, uid := range map[string]types.UID{
		"none": "", "huge": types.UID(strings.Repeat("a", 900_000)), "65 characters": types.UID(strings.Repeat("a", 65)),
		"more lines": "a\nb", "a script": "<script>", "more than ASCII": "ä",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mustEnsure()
			w.did("before", 1, 1)
			w.wanted.Account.UID = uid
			state, err := w.ensure()
			if reasonOf(err) != ReasonAccountInvalid || len(err.Error()) > 512 || uid != "" && strings.Contains(err.Error(), string(uid)) {
				t.Errorf("%+v: %.1000v", state, err)
			}
			w.did("then", 0, 0)
		})
	}
}

// TestEnsure_ClockSkew: clock skew does not make a token appear to last longer than it does.
func TestEnsure_ClockSkew(t *testing.T) {
	for _, ahead := range []time.Duration{20 * time.Hour, time.Minute, -time.Minute, -30 * time.Minute} {
		w := newWorld(t)
		w.answer = func(r *authenticationv1.TokenRequest) error {
			r.Status.ExpirationTimestamp.Time = r.Status.ExpirationTimestamp.Add(ahead)
			return nil
		}
		if state := w.mustEnsure(); state.Expiration.After(start.Add(time.Hour)) || !state.Expiration.After(start.Add(29*time.Minute)) {
			t.Errorf("with a clock of the cluster that is ahead by %s, a token of an hour lasts until %s", ahead, state.Expiration)
		}
	}
}

// TestEnsure_ShortLifetimesCauseFewRequests: if a cluster grants only short lifetimes, few tokens are requested.
func TestEnsure_ShortLifetimesCauseFewRequests(t *testing.T) {
	w := newWorld(t)
	w.granted = 10 * time.Second
	for end := start.Add(time.Hour); w.clock.Now().Before(end); {
		state, err := w.ensure()
		if reasonOf(err) != ReasonTokenTooShort {
			t.Fatal(err)
		}
		w.clock.SetTime(state.Next)
	}
	if w.asked > 25 || w.asked < 10 || w.writes > 0 {
		t.Errorf("in an hour, %d tokens are asked for and %d writes made", w.asked, w.writes)
	}
}

// TestEnsure_ConstantChangesCauseFewRequests: a cluster returns another UID of the ServiceAccount each time, or a program deletes the Secret
// each time.
func TestEnsure_ConstantChangesCauseFewRequests(t *testing.T) {
	for name, change := range map[string]func(w *world, i int){
		"UIDs": func(w *world, i int) { w.wanted.Account.UID = types.UID(fmt.Sprint(i)) },
		"Secret": func(w *world, _ int) {
			_ = w.client.Delete(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: w.wanted.Secret.Name}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			refused := 0
			for i := range 600 {
				change(w, i)
				state, err := w.ensure()
				if err != nil {
					refused++
					if reasonOf(err) != ReasonTooManyTokens || state.Usable {
						t.Fatalf("%+v: %v", state, err)
					}
				}
				w.clock.SetTime(w.clock.Now().Add(time.Second))
			}
			if w.asked != 2*maxTokens || refused != 600-w.asked {
				t.Errorf("in ten minutes, %d tokens were asked for, and %d times none", w.asked, refused)
			}
		})
	}
}

// TestEnsure_UsesTokenUntilExpiry verifies that, and that a different source is tried at once.
func TestEnsure_UsesTokenUntilExpiry(t *testing.T) {
	w := newWorld(t)
	w.mustEnsure()
	w.answer = func(*authenticationv1.TokenRequest) error { return errors.New("away") }
	w.clock.SetTime(start.Add(50 * time.Minute))
	state, err := w.ensure()
	if reasonOf(err) != ReasonTokenNotGranted || !state.Usable || !state.Expiration.Equal(start.Add(time.Hour)) {
		t.Errorf("%+v: %v", state, err)
	}
	w.answer, w.wanted.Source = nil, source(t, goodCluster, goodUser+"x")
	if state := w.mustEnsure(); !state.Minted {
		t.Errorf("with another source: %+v", state)
	}
	w.answer = func(*authenticationv1.TokenRequest) error { return errors.New("away") }
	w.clock.SetTime(start.Add(10 * time.Hour))
	if state, err := w.ensure(); err == nil || state.Usable || !state.Expiration.IsZero() {
		t.Errorf("%+v: %v", state, err)
	}
}

// TestEnsure_CrashCausesOneRequest: the process ends after the token is granted and before it is written, and starts again.
func TestEnsure_CrashCausesOneRequest(t *testing.T) {
	w := newWorld(t)
	ctx, crash := context.WithCancel(t.Context())
	w.hooks.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		crash()
		return context.Canceled
	}
	if state, err := w.keeper.Ensure(ctx, w.wanted); !errors.Is(err, context.Canceled) || state.Usable {
		t.Errorf("%+v: %v", state, err)
	}
	w.did("the crash", 1, 1)
	w.hooks.Create = nil
	w.keeper = &Minter{Client: w.client, Clock: w.clock}
	w.mustEnsure()
	w.did("the next start", 1, 1)
}

// TestEnsure_ManagementCluster: failed writes cause no endless token requests, and a stale cache causes none.
func TestEnsure_ManagementCluster(t *testing.T) {
	w := newWorld(t)
	full := errors.New("the quota is used up")
	w.hooks.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return full }
	for range 10 {
		if state, err := w.ensure(); !errors.Is(err, full) || state.Usable {
			t.Errorf("%+v: %v", state, err)
		}
	}
	w.did("refused", 1, 1)
	w.hooks.Create = nil
	w.clock.SetTime(start.Add(time.Minute))
	w.mustEnsure()
	w.did("then", 1, 1)

	// The cache does not have the write yet.
	old := w.keeper
	w.keeper = &Minter{Clock: w.clock, Live: w.client, Client: interceptor.NewClient(w.client, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
		}})}
	w.mustEnsure()
	w.did("with an old cache", 0, 0)
	w.keeper = old

	away := errors.New("away")
	w.hooks.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return away
	}
	if _, err := w.ensure(); !errors.Is(err, away) {
		t.Error(err)
	}
	w.did("away", 0, 0)
}

// TestEnsure_IncompleteArguments verifies the errors for incomplete arguments.
func TestEnsure_IncompleteArguments(t *testing.T) {
	for _, change := range []func(*Desired){
		func(w *Desired) { w.Source = nil }, func(w *Desired) { w.Cluster = nil }, func(w *Desired) { w.Account.UID = "" },
		func(w *Desired) { w.Account.Name = "" }, func(w *Desired) { w.Secret.Name = "" },
	} {
		w := newWorld(t)
		change(&w.wanted)
		if _, err := w.ensure(); err == nil {
			t.Errorf("%+v is taken", w.wanted)
		}
		w.did("then", 0, 0)
	}
}
