// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterprovider is the conformance suite of cluster providers: whether a provider that runs keeps what the users of
// Clusters and AccessRequests rely on. It knows the provider by its name and by what it does on the hub only.
package clusterprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// Config says what is looked at.
type Config struct {
	// Hub is the way to the hub, as an admin.
	Hub *rest.Config
	// Provider is the name of the provider.
	Provider string
	// Profile is the one that the cluster is made from. Empty: the first of the provider.
	Profile string
	// Timeout is the time that a cluster may take until it is ready, or gone. 0: 5 minutes.
	Timeout time.Duration
	// Patience is the time for which the suite watches that the provider changes nothing that it must not change. 0: 3 seconds.
	Patience time.Duration
}

// suite is one run.
type suite struct {
	Config
	client  client.Client
	suffix  string
	cluster *v1alpha1.Cluster
	access  *v1alpha1.AccessRequest
	secret  *corev1.Secret
}

// point is one thing that a provider has to keep.
type point struct {
	name string
	// needs says that nothing after it can be told when this one is not kept.
	needs bool
	check func(context.Context) error
}

// Run looks at a provider, fails the test for each point that it does not keep, and logs a report of all.
func Run(t *testing.T, config Config) {
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Minute
	}
	if config.Patience == 0 {
		config.Patience = 3 * time.Second
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config.Hub, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{Config: config, client: c, suffix: rand.String(5)}
	t.Cleanup(func() { s.cleanup(context.WithoutCancel(t.Context())) })
	report := &strings.Builder{}
	fmt.Fprintf(report, "Conformance of the cluster provider %q:\n", config.Provider)
	skip := false
	for _, p := range s.points() {
		if skip {
			fmt.Fprintf(report, "  skipped  %s\n", p.name)
			continue
		}
		kept := t.Run(p.name, func(t *testing.T) {
			if err := p.check(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if kept {
			fmt.Fprintf(report, "  kept     %s\n", p.name)
			continue
		}
		fmt.Fprintf(report, "  NOT KEPT %s\n", p.name)
		skip = p.needs
	}
	t.Log(report)
}

func (s *suite) points() []point {
	return []point{
		{"publishes a profile of its own", true, s.publishes},
		{"leaves clusters of other providers alone", false, s.leavesOthersClusters},
		{"leaves ignored clusters alone", true, s.leavesIgnored},
		{"makes a cluster ready", true, s.makesReady},
		{"says what the cluster is", false, s.describes},
		{"leaves requests alone that are not prepared for it", false, s.leavesOthersRequests},
		{"grants a token", true, s.grantsToken},
		{"answers with a Secret as its readers expect it", false, s.secretIsRight},
		{"gives the rights asked for, and no others", false, s.rightsAreRight},
		{"makes a Secret again that was deleted", false, s.makesSecretAgain},
		{"changes the rights with the request", false, s.followsChanges},
		{"grants OIDC, or says that it does not", false, s.answersOIDC},
		{"waits for the finalizers of others", false, s.waitsForOthers},
		{"keeps the cluster running as long as others hold it", false, s.runsWhileItIsHeld},
		{"takes access back", false, s.takesBack},
		{"removes the cluster", false, s.removes},
	}
}

func (s *suite) name(what string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "conformance-" + what + "-" + s.suffix}
}

// await polls until ok is, and says otherwise what the last error was.
func (s *suite) await(ctx context.Context, what string, ok func() error) error {
	deadline := time.Now().Add(s.Timeout)
	for {
		err := ok()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s: not after %s: %w", what, s.Timeout, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *suite) get(ctx context.Context, object client.Object) error {
	return s.client.Get(ctx, client.ObjectKeyFromObject(object), object)
}

func (s *suite) gone(ctx context.Context, object client.Object) error {
	return s.await(ctx, object.GetName()+" is gone", func() error {
		switch err := s.get(ctx, object); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is there, with the finalizers %v", object.GetFinalizers())
	})
}

func (s *suite) patch(ctx context.Context, object client.Object, patch string) error {
	return s.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// untouched is whether objects stay as they are for a while.
func (s *suite) untouched(ctx context.Context, objects ...client.Object) error {
	select {
	case <-time.After(s.Patience):
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, object := range objects {
		before := object.GetResourceVersion()
		if err := s.get(ctx, object); err != nil {
			return err
		}
		if object.GetResourceVersion() != before {
			return fmt.Errorf("%s has been changed: %+v", object.GetName(), object)
		}
	}
	return nil
}

// cleanup removes what a run that has failed leaves.
func (s *suite) cleanup(ctx context.Context) {
	if s.cluster != nil {
		_ = s.letGo(ctx)
	}
	for _, object := range []client.Object{
		&v1alpha1.AccessRequest{ObjectMeta: s.name("token")}, &v1alpha1.AccessRequest{ObjectMeta: s.name("oidc")},
		&v1alpha1.AccessRequest{ObjectMeta: s.name("others")},
		&v1alpha1.Cluster{ObjectMeta: s.name("cluster")}, &v1alpha1.Cluster{ObjectMeta: s.name("others")},
		&v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: s.name("others").Name}},
	} {
		_ = s.client.Delete(ctx, object)
	}
}
