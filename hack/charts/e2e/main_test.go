// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e installs the charts by Helm on real clusters, in the ways that their folders ci have.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/hack/charts"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

func TestMain(m *testing.M) {
	kubelet.AsRoot()
	// What the tests share is a cluster with nothing of ours.
	os.Exit(harness.Run(m, func(c *localhub.Options) { c.Plain, c.FrontArgs = true, trustIssuer() }))
}

// timeout is for what Helm waits for: hooks, and objects that go away.
const timeout = 30 * time.Second

// helm is a release of a chart on a cluster.
type helm struct {
	*testing.T
	cluster          *localhub.Instance
	chart, namespace string
	config           *action.Configuration
	// clientSide has upgrades send patches, as Helm 3 does, and not apply on the server.
	clientSide bool
}

func newHelm(t *testing.T, cluster *localhub.Instance, chart, namespace string) *helm {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true) // what is discovered of the server need not be read again for each manifest
	kubeconfig := cluster.AdminKubeconfig()
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.QPS = -1 // as many as it takes: 5 in a second is for programs that nothing waits for
		return c
	}
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := config.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the next test installs it, too
		u := action.NewUninstall(config)
		u.IgnoreNotFound, u.WaitStrategy, u.Timeout = true, kube.HookOnlyStrategy, timeout
		if _, err := u.Run(chart); err != nil {
			t.Error(err)
		}
	})
	return &helm{T: t, cluster: cluster, chart: chart, namespace: namespace, config: config}
}

// install installs the chart. Nothing becomes ready without nodes, so it does not wait.
func (h *helm) install(values map[string]any, adapt ...func(*action.Install)) (*release.Release, error) {
	h.Helper()
	i := action.NewInstall(h.config)
	i.ReleaseName, i.Namespace, i.CreateNamespace, i.Timeout = h.chart, h.namespace, true, timeout
	i.WaitStrategy = kube.HookOnlyStrategy
	for _, change := range adapt {
		change(i)
	}
	r, err := i.Run(harness.Must(charts.Load(harness.Root, h.chart))(h.T), values)
	if err != nil {
		return nil, err
	}
	return r.(*release.Release), nil
}

func (h *helm) upgrade(values map[string]any) (*release.Release, error) {
	h.Helper()
	u := action.NewUpgrade(h.config)
	u.Namespace, u.Timeout, u.WaitStrategy, u.ServerSideApply = h.namespace, timeout, kube.HookOnlyStrategy, "auto"
	if h.clientSide {
		u.ServerSideApply = "false"
	}
	r, err := u.Run(h.chart, harness.Must(charts.Load(harness.Root, h.chart))(h.T), values)
	if err != nil {
		return nil, err
	}
	return r.(*release.Release), nil
}

func (h *helm) rollback() error {
	r := action.NewRollback(h.config)
	r.Timeout, r.WaitStrategy, r.ServerSideApply = timeout, kube.HookOnlyStrategy, "auto"
	return r.Run(h.chart)
}

func (h *helm) uninstall() error {
	u := action.NewUninstall(h.config)
	u.Timeout, u.WaitStrategy, u.DeletionPropagation = timeout, kube.HookOnlyStrategy, "background"
	_, err := u.Run(h.chart)
	return err
}

// there are the objects of a manifest that are there, and are not about to go.
func (h *helm) there(manifest string) (names []string) {
	h.Helper()
	all, err := h.config.KubeClient.Build(strings.NewReader(manifest), false)
	if err != nil {
		h.Fatal(err)
	}
	for _, o := range all {
		err := o.Get()
		if apierrors.IsNotFound(err) {
			continue
		}
		found, isObject := o.Object.(metav1.Object)
		if err != nil || !isObject {
			h.Fatalf("%s: %v", o.ObjectName(), err)
		}
		if found.GetDeletionTimestamp() == nil {
			names = append(names, o.Mapping.GroupVersionKind.Kind+" "+o.Name)
		}
	}
	return names
}

// ways are the ci/*-values.yaml of a chart.
func ways(t *testing.T, chart string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, file := range harness.Must(filepath.Glob(filepath.Join(charts.Dir(harness.Root, chart), "ci", "*-values.yaml")))(t) {
		values := map[string]any{}
		if err := yaml.UnmarshalStrict(harness.Must(os.ReadFile(file))(t), &values); err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = values
	}
	return all
}

// namespace makes one, if it is not there.
func namespace(t *testing.T, cluster *localhub.Instance, name string) {
	t.Helper()
	_, err := harness.Kube(t, cluster.AdminConfig()).CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// gone waits until a namespace that was deleted has gone.
func gone(t *testing.T, cluster *localhub.Instance, name string) {
	t.Helper()
	harness.Eventually(t, "the namespace "+name+" goes", func(ctx context.Context) (bool, error) {
		found, err := harness.Kube(t, cluster.AdminConfig()).CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, errors.Join(err, fmt.Errorf("it says %v", found.Status.Conditions))
	})
}
