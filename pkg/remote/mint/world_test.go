// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

import (
	"context"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const grantedToken = "granted-granted-granted-granted"

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world has a management cluster, and a cluster that grants tokens, with a clock that stands still.
type world struct {
	t      *testing.T
	clock  *clocktesting.FakePassiveClock
	keeper *Minter
	wanted Desired
	client client.WithWatch
	// hooks intercept each call of the client.
	hooks interceptor.Funcs

	// granted is the lifetime that is granted, and answer changes the response.
	granted time.Duration
	answer  func(*authenticationv1.TokenRequest) error
	asked   int
	writes  int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(start), granted: time.Hour}
	count := func(ctx context.Context, do func() error) error {
		w.writes++
		return do()
	}
	w.client = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if w.hooks.Get != nil {
				return w.hooks.Get(ctx, c, key, o, opts...)
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return count(ctx, func() error {
				if w.hooks.Create != nil {
					return w.hooks.Create(ctx, c, o, opts...)
				}
				return c.Create(ctx, o, opts...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return count(ctx, func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return count(ctx, func() error { return c.Delete(ctx, o, opts...) })
		},
	}).Build()
	w.keeper = &Minter{Client: w.client, Clock: w.clock}
	w.wanted = Desired{
		Secret:  types.NamespacedName{Namespace: "agent", Name: "external-managed-kubeconfig-work"},
		Account: Account{Namespace: "agent", Name: "k-work-sa", UID: "uid-1"},
		Source:  source(t, goodCluster, goodUser),
		Cluster: w,
		Labels:  map[string]string{"of": "k"},
	}
	return w
}

// Token implements TokenSource.
func (w *world) Token(_ context.Context, account Account, lifetime time.Duration) (*authenticationv1.TokenRequest, error) {
	w.asked++
	granted := min(w.granted, lifetime)
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(granted / time.Second))},
		Status: authenticationv1.TokenRequestStatus{
			Token:               fmt.Sprintf("%s-%s-%d", grantedToken, account.UID, w.asked),
			ExpirationTimestamp: metav1.NewTime(w.clock.Now().Add(granted)),
		},
	}
	if w.answer != nil {
		if err := w.answer(request); err != nil {
			return nil, err
		}
	}
	return request, nil
}

func (w *world) ensure() (Result, error) {
	w.t.Helper()
	state, err := w.keeper.Ensure(w.t.Context(), w.wanted)
	if state.Next.Before(w.clock.Now()) {
		w.t.Errorf("the next call is at %s, and it is %s", state.Next, w.clock.Now())
	}
	if err != nil {
		noSecrets(w.t, err.Error())
	}
	return state, err
}

// mustEnsure calls ensure, and fails on an error or an unusable state.
func (w *world) mustEnsure() Result {
	w.t.Helper()
	state, err := w.ensure()
	if err != nil || !state.Usable || !state.Expiration.After(w.clock.Now()) {
		w.t.Fatalf("%+v: %v", state, err)
	}
	return state
}

func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.client.Get(w.t.Context(), w.wanted.Secret, secret); err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// did compares the counts, and resets them.
func (w *world) did(what string, asked, writes int) {
	w.t.Helper()
	if w.asked != asked || w.writes != writes {
		w.t.Errorf("%s: %d tokens were asked for and %d writes made, not %d and %d", what, w.asked, w.writes, asked, writes)
	}
	w.asked, w.writes = 0, 0
}
