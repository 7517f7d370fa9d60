// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/clusterprovider"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func tokenRequest() *authenticationv1.TokenRequest { return &authenticationv1.TokenRequest{} }

func listOptions() metav1.ListOptions { return metav1.ListOptions{} }

func (p *providing) waitsForTheCluster(t *testing.T) {
	secret := p.admit("existing", "broken", []byte("this is no kubeconfig"))
	c := p.newCluster("test.existing.broken", "broken")
	p.awaitPhase(c, v1alpha1.StatusPhaseProgressing)
	ar := p.request(t, "early", c, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	message := p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "ClusterNotReady")
	if !strings.Contains(message, `the configuration "broken": key kubeconfig of the Secret: it is not a valid kubeconfig`) {
		t.Error(message)
	}
	second := p.request(t, "given-up", c, &v1alpha1.TokenConfig{})
	p.awaitAccess(t, second, v1alpha1.REQUEST_PENDING, "ClusterNotReady")
	p.delete(t, second)
	p.awaitGone(t, second)

	p.readmit(t, secret, harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t))
	p.granted(t, ar)
	p.delete(t, ar)
	p.awaitGone(t, ar)
	p.delete(t, c)
	p.awaitGone(t, c)
	p.delete(t, secret)
	p.awaitGone(t, &v1alpha1.ClusterProfile{ObjectMeta: harness.Named("test.existing.broken")})
}

func (p *providing) keepsAccessToWhatIsOutOfReach(t *testing.T) {
	good := harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t)
	config := p.admit("existing", "shaky", good)
	c := p.newCluster("test.existing.shaky", "shaky")
	p.awaitPhase(c, v1alpha1.StatusPhaseReady)
	ar := p.request(t, "shaken", c, &v1alpha1.TokenConfig{})
	p.granted(t, ar)
	write := func(kubeconfig []byte) { p.readmit(t, config, kubeconfig) }
	write([]byte("this is no kubeconfig"))
	p.patch(t, ar, `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
	// The condition states the reason, or that the Cluster is not ready, if that was observed first.
	harness.Eventually(t, "the request says that its cluster is out of reach", func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(ar), ar); err != nil {
			return false, err
		}
		if !ar.Status.IsGranted() || !meta.IsStatusConditionFalse(ar.Status.Conditions, "AccessReady") {
			return false, fmt.Errorf("%+v", ar.Status)
		}
		return true, nil
	})
	write(good)
	p.look(t, ar)
	p.granted(t, ar)
	p.delete(t, ar)
	p.awaitGone(t, ar)
	p.delete(t, c)
	p.awaitGone(t, c)
}

func (p *providing) letsGoOfAVanishedCluster(t *testing.T) {
	p.admit("existing", "vanishing", harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t))
	c := p.newCluster("test.existing.vanishing", "vanishing")
	p.awaitPhase(c, v1alpha1.StatusPhaseReady)
	ar := p.request(t, "bereft", c, &v1alpha1.TokenConfig{})
	p.granted(t, ar)
	p.delete(t, c)
	p.awaitGone(t, c)
	if left := p.left(t, "existing", "bereft"); len(left) > 0 {
		t.Errorf("left in a cluster that lives on: %v", left)
	}
	p.delete(t, ar)
	p.awaitGone(t, ar)
}

func (p *providing) keepsOutOfEachOthersWay(t *testing.T) {
	p.admit("another", "shared", harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t))
	kill := p.run("another")
	c := p.newCluster("test.another.shared", "green")
	p.awaitPhase(c, v1alpha1.StatusPhaseReady)
	token := &v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{{Rules: rulesOf("list", "nodes")}}}
	one, two := p.request(t, "one", p.cluster, token), p.request(t, "two", c, token)
	ofOne := p.granted(t, one)
	p.granted(t, two)
	p.get(t, p.cluster)
	if is := p.cluster.Labels[v1alpha1.ProviderLabel]; is != "existing" || len(p.cluster.Finalizers) != 1 || len(c.Finalizers) != 1 {
		t.Errorf("provider %s, finalizers %v and %v", is, p.cluster.Finalizers, c.Finalizers)
	}
	p.delete(t, two)
	p.awaitGone(t, two)
	if before := p.left(t, "existing", "one"); len(before) != 3 || len(p.left(t, "another", "two")) != 0 {
		t.Errorf("left: %v", before)
	}
	harness.Must(p.as(t, ofOne).CoreV1().Nodes().List(t.Context(), listOptions()))(t)

	kill() // access outlives a stopped provider, and is not granted again when it restarts
	three := p.request(t, "three", c, token)
	p.run("another")
	secret := p.granted(t, three)
	p.patch(t, c, `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
	harness.Eventually(t, "the provider has looked at the Cluster", func(context.Context) (bool, error) {
		p.get(t, c)
		return len(c.Annotations[v1alpha1.OperationAnnotation]) == 0, nil
	})
	p.past(t, c)
	if again := p.granted(t, three); again.ResourceVersion != secret.ResourceVersion {
		t.Error("what is in place has been granted again")
	}
	p.get(t, ofOne)
}

func (p *providing) waitsForForeignFinalizers(t *testing.T) {
	c := p.cluster
	p.get(t, c)
	p.patch(t, c, `{"metadata":{"finalizers":["`+c.Finalizers[0]+`","request.clusters.openmcp.cloud/somebody"]}}`)
	p.delete(t, c)
	p.awaitPhase(c, v1alpha1.StatusPhaseTerminating)
	condition := meta.FindStatusCondition(c.Status.Conditions, "ForeignFinalizers")
	if condition == nil || condition.Reason != "WaitingForDeletion" ||
		!strings.Contains(condition.Message, "request.clusters.openmcp.cloud/somebody") {
		t.Errorf("conditions %+v", c.Status.Conditions)
	}
	p.patch(t, c, `{"metadata":{"finalizers":["`+c.Finalizers[0]+`"]}}`)
	p.awaitGone(t, c)
	harness.Eventually(t, "its cluster is still there", func(context.Context) (bool, error) {
		_, err := p.target.Discovery().ServerVersion()
		return err == nil, err
	})
}

func TestAccessProvider_Conformance(t *testing.T) {
	p := newProvided(t)
	p.delete(t, p.cluster)
	p.awaitGone(t, p.cluster)
	t.Run("kubeconfig", func(t *testing.T) {
		clusterprovider.Run(t, clusterprovider.Config{Hub: p.hub.AdminConfig(), Provider: "existing", Timeout: harness.Timeout})
	})
	bin := harness.BinDir(t)
	p.runKind("local", "here", "--dir="+t.TempDir(), "--bin-dir="+bin, "--end-with-provider", "--unsafe-no-fsync")
	t.Run("local", func(t *testing.T) {
		clusterprovider.Run(t, clusterprovider.Config{Hub: p.hub.AdminConfig(), Provider: "here", Timeout: harness.Timeout})
	})
}
