// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// request waits until the only request is as the test expects, and returns it.
func (a *tokenAccess) request(t *testing.T, is func(*v1alpha1.AccessRequest) bool) *v1alpha1.AccessRequest {
	t.Helper()
	list := &v1alpha1.AccessRequestList{}
	harness.Eventually(t, "the AccessRequest", func(ctx context.Context) (bool, error) {
		if err := a.client.List(ctx, list, client.InNamespace("teams")); err != nil || len(list.Items) != 1 {
			return harness.Holds(false, list.Items)
		}
		return harness.Holds(is(&list.Items[0]), list.Items[0])
	})
	return &list.Items[0]
}

func TestKubectlHub_Access(t *testing.T) {
	hub := harness.LendHub(t)
	a := provideTokens(t, hub, harness.LendCluster(t))
	p := harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"hub": a.hub})}
	run := func(args ...string) (done chan string) {
		done = make(chan string, 1)
		cmd := p.Command(t, append([]string{"access", "blue", "-n", "teams", "--context", "hub"}, args...)...)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				out = append(out, err.Error()...)
			}
			done <- string(out)
		}()
		return done
	}
	done := run("--cluster-role=view", "--role=web/granted", "--ttl=2h")
	ar := a.request(t, func(*v1alpha1.AccessRequest) bool { return true })
	if ref := ar.Spec.ClusterRef; ref == nil || ref.Name != "blue" || ref.Namespace != "teams" ||
		ar.Spec.TTL.Duration != 2*time.Hour || len(ar.Spec.Token.RoleRefs) != 2 {
		t.Errorf("the request is %+v", ar.Spec)
	}
	a.provide(t, ar)
	harness.Contains(t, <-done, "accessrequest/"+ar.Name+" created", "has the context teams--blue for cluster teams/blue")

	config := harness.Must(clientcmd.LoadFromFile(p.Kubeconfig))(t)
	if config.CurrentContext == "teams--blue" || config.AuthInfos["teams--blue"].Token != "" {
		t.Errorf("the kubeconfig became %+v", config)
	}
	bin := filepath.Dir(harness.Binary(t, "kubectl-hub"))
	onCluster := func(args ...string) (string, error) {
		cmd := a.hub.Kubectl(t.Context(), append([]string{"--kubeconfig", p.Kubeconfig, "--context", "teams--blue"}, args...)...)
		cmd.Env = append(cmd.Env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+p.Kubeconfig)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for range 2 { // each with a new token
		if out, err := onCluster("get", "configmaps", "-n", "web"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	out, _ := onCluster("get", "secrets", "-n", "web")
	harness.Contains(t, out, `User "system:serviceaccount:accessrequests:granted" cannot list resource "secrets"`)

	// Different rights have to be granted.
	done = run("--cluster-role=edit", "--timeout="+harness.Timeout.String())
	changed := a.request(t, func(r *v1alpha1.AccessRequest) bool { return r.Generation > ar.Generation })
	out, err := onCluster("get", "configmaps", "-n", "web")
	if err == nil {
		t.Error("a token is given of a request that has changed")
	}
	harness.Contains(t, out, "it has changed since it was granted")
	changed.Status.Phase, changed.Status.ObservedGeneration = v1alpha1.REQUEST_DENIED, changed.Generation
	changed.Status.Conditions = []metav1.Condition{{
		Type: "Allowed", Status: "False", Reason: "Policy", Message: "nobody gets edit", LastTransitionTime: metav1.Now(),
	}}
	if err := a.client.Status().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	harness.Contains(t, <-done, " configured\n", "is denied: nobody gets edit")

	harness.Contains(t, <-run("--revoke"), "access to cluster teams/blue revoked")
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(ar), ar); !apierrors.IsNotFound(err) {
		t.Errorf("the request is there: %v", err)
	}
	_, stderr, err := p.Run(t, "access-token", "--request=teams/"+ar.Name, "--context", "hub")
	if err == nil {
		t.Error("a token is given of a request that is gone")
	}
	harness.Contains(t, stderr, "AccessRequest teams/"+ar.Name+" does not exist any more", "Request access again with kubectl hub access")
	left := harness.Must(clientcmd.LoadFromFile(p.Kubeconfig))(t)
	if left.Contexts["teams--blue"] != nil || left.AuthInfos["teams--blue"] != nil || left.Contexts["hub"] == nil {
		t.Errorf("the kubeconfig became %+v", left)
	}
}
