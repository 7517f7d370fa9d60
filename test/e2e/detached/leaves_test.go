// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDetached_DeniedClusterUnjoins verifies this for an agent that has no rights on the hub any more when the Klusterlet is deleted.
func TestDetached_DeniedClusterUnjoins(t *testing.T) {
	w := newWorld(t)
	j := w.join()
	j.brings()
	w.plugin.Must(t, "deny", "--clusters", j.name, "--wait", "--timeout", "2m", "--context", "hub")
	j.mayNothing()
	harness.MustKubectlOf(t, w.management.Instance, "", "delete", "klusterlet", j.name, "--timeout="+harness.Timeout.String())
	j.isForgotten()
	j.isGone()
}

// TestDetached_Unjoins verifies that a cluster that leaves by kubectl hub unjoin leaves no objects, except those of its works if these are to be
// orphaned.
func TestDetached_Unjoins(t *testing.T) {
	w := newWorld(t)
	j := w.joined()
	unjoin := []string{"unjoin", "--mode=detached", "--management-context=mgmt", "--cluster-name=" + j.name}
	if stdout, stderr, err := w.plugin.Run(t, unjoin...); err == nil || !strings.Contains(stderr, "choose by --works=delete or --works=keep what happens to the objects") {
		t.Fatalf("without a word on its works it ends with %v\n%s%s", err, stdout, stderr)
	}
	current = nil
	r := newReader(t, map[string]*localhub.Instance{"mgmt": w.management.Instance})
	r.Instead("--cluster-name c1", "--works=keep --cluster-name "+j.name, "c1", j.name)
	r.Types(shown(t, "TestDetached_Unjoins", "kubectl hub unjoin"))
	j.isForgotten()
	j.isGone()
}

// mayNothing verifies that the identity of the agent has no rights in the namespace of its cluster.
func (j *joined) mayNothing() {
	j.Helper()
	secret := harness.Must(harness.Kube(j.T, j.management.AdminConfig()).CoreV1().Secrets(j.namespace).Get(j.Context(), "hub-kubeconfig-secret", metav1.GetOptions{}))(j.T)
	config := rest.AnonymousClientConfig(j.hub.AdminConfig())
	config.CertData, config.KeyData = secret.Data["tls.crt"], secret.Data["tls.key"]
	eventually(j.T, "the agent has no rights in the namespace of its cluster", func() error {
		if own, each := rulesIn(j.T, config, j.name), rulesIn(j.T, config, metav1.NamespaceDefault); !slices.Equal(own, each) {
			return fmt.Errorf("it may\n%s\nand in each\n%s", strings.Join(own, "\n"), strings.Join(each, "\n"))
		}
		return nil
	})
}

// isGone verifies that the Klusterlet has left no objects, except those of its work.
func (j *joined) isGone() {
	j.Helper()
	left(j.T, "the managed cluster", j.managed.AdminConfig(), append(j.before.managed, "v1 configmaps default/"+j.name))
	if got, err := kubectl(j.T, j.managed.Instance, "get", "configmap", j.name, "-o", "jsonpath={.data.text}{.metadata.ownerReferences}"); err != nil || got != "hello" {
		j.Errorf("what the work has brought is %q, %v", got, err)
	}
	harness.MustKubectlOf(j.T, j.managed.Instance, "", "delete", "configmap", j.name)
	left(j.T, "the management cluster", j.management.AdminConfig(), j.before.management)
}

// isForgotten deletes the cluster, which is not accepted any more, as the admin of the hub, and the work, whose finalizer no agent removes.
func (j *joined) isForgotten() {
	j.Helper()
	says(j.T, j.hub, "the hub was told", "HubClusterAdminDenied", "get", "managedcluster", j.name, "-o",
		`jsonpath={.status.conditions[?(@.type=="HubAcceptedManagedCluster")].reason}`)
	harness.MustKubectlOf(j.T, j.hub, "", "delete", "manifestwork", j.name, "-n", j.name, "--wait=false")
	harness.MustKubectlOf(j.T, j.hub, "", "patch", "manifestwork", j.name, "-n", j.name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	harness.MustKubectlOf(j.T, j.hub, "", "delete", "managedcluster", j.name, "--timeout="+harness.Timeout.String())
	left(j.T, "the hub", j.hub.AdminConfig(), j.before.hub)
}

// left waits until a cluster has the same objects as before. Kubernetes deletes the objects of a namespace five seconds after the namespace, so a
// test deletes on all clusters before it waits.
func left(t *testing.T, where string, config *rest.Config, before []string) {
	t.Helper()
	eventually(t, where+" has nothing more, and nothing less", func() error {
		now := inventory(t, config)
		more := slices.DeleteFunc(slices.Clone(now), func(name string) bool { return slices.Contains(before, name) })
		less := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return slices.Contains(now, name) })
		if len(more)+len(less) > 0 {
			return fmt.Errorf("more: %v, less: %v", more, less)
		}
		return nil
	})
}

// settled returns the inventory of a cluster once no namespace of it is being deleted: a previous test may not have waited for all of its deletions.
func settled(t *testing.T, config *rest.Config) []string {
	t.Helper()
	eventually(t, "no namespace is being deleted", func() error {
		all := harness.Must(harness.Kube(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}))(t)
		for _, namespace := range all.Items {
			if namespace.DeletionTimestamp != nil {
				return fmt.Errorf("%s is", namespace.Name)
			}
		}
		return nil
	})
	return inventory(t, config)
}

// passing lists the kinds whose objects are created and deleted by the system.
var passing = []string{"events", "leases", "endpoints", "endpointslices", "certificatesigningrequests", "apiservices", "componentstatuses",
	"clustertrustbundles"}

// ofOperator matches the names of hub-operator's objects, with their namespaces. The first command installs it, and it remains.
var ofOperator = regexp.MustCompile(`^clusterhub-operator(/hub-operator.*)?$|(^|/)clusterhub:hub-operator|^(klusterlets|clustermanagers)\.operator\.`)

// inventory returns all objects of a cluster, "GROUP/VERSION RESOURCE NAMESPACE/NAME", except those of hub-operator.
func inventory(t *testing.T, config *rest.Config) (names []string) {
	t.Helper()
	lists := harness.Must(discovery.ServerPreferredResources(harness.Kube(t, config).Discovery()))(t)
	client := harness.Must(dynamic.NewForConfig(config))(t)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, resource := range list.APIResources {
			if slices.Contains(passing, resource.Name) {
				continue
			}
			gv := harness.Must(schema.ParseGroupVersion(list.GroupVersion))(t)
			objects, err := client.Resource(gv.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // deleted since discovery
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects.Items {
				// kube-controller-manager creates these asynchronously.
				if resource.Name == "serviceaccounts" && (o.GetName() == "default" || o.GetNamespace() == metav1.NamespaceSystem) ||
					resource.Name == "configmaps" && (o.GetName() == "kube-root-ca.crt" || o.GetNamespace() == metav1.NamespaceSystem) {
					continue
				}
				name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
				if !ofOperator.MatchString(name) {
					names = append(names, list.GroupVersion+" "+resource.Name+" "+name)
				}
			}
		}
	}
	return names
}
