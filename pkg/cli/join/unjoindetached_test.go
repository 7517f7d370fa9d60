// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/join"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// leaving is a cluster that has joined, in the state after join and hub-operator.
type leaving struct {
	*detaching
	args []string
}

func newLeaving(t *testing.T) *leaving {
	t.Helper()
	d := newDetaching(t)
	if _, _, err := d.run(t); err != nil {
		t.Fatal(err)
	}
	accepted := clitest.NewCluster("c1", nil)
	accepted.Spec.HubAcceptsClient = true
	d.hub.Put(accepted)
	d.management.Put(newDetachedIdentity(t, d.hub))
	d.management.Asked, d.managed.Asked, d.hub.Asked = nil, nil, nil
	return &leaving{d, []string{"unjoin", "--mode", "detached", "--management-context", "mgmt", "--cluster-name", "c1"}}
}

// newDetachedIdentity returns the secret of an agent that has a certificate of the hub.
func newDetachedIdentity(t *testing.T, hub *clitest.Server) *corev1.Secret {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("agent", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{CurrentContext: "hub", Contexts: map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "hub"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"hub": {Server: hub.URL, CertificateAuthorityData: hub.CA()}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"hub": {ClientCertificate: "tls.crt", ClientKey: "tls.key"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clitest.DetachedSpace, Name: operatorv1.HubKubeconfigSecret}, Data: map[string][]byte{
		registration.KeyClusterName: []byte("c1"), registration.KeyKubeconfig: kubeconfig, registration.KeyTLSCert: certificate, registration.KeyTLSKey: key}}
}

func (l *leaving) run(t *testing.T, more ...string) (stdout, stderr string, err error) {
	t.Helper()
	stdout, stderr, err = clitest.Run(t, l.config, append(slices.Clone(l.args), more...)...)
	l.hides(t, stderr, err)
	return stdout, stderr, err
}

func TestUnjoinDetached_NotifiesHubAndDeletesKlusterlet(t *testing.T) {
	l := newLeaving(t)
	stdout, _, err := l.run(t)
	if err != nil || stdout != "Cluster c1 has left its hub. Its ManagedCluster still exists; an admin can delete it:\n\n    kubectl delete managedcluster c1\n" {
		t.Fatalf("%v: %q", err, stdout)
	}
	if l.management.Get(clitest.KlusterletPath) != nil {
		t.Error("the Klusterlet is there")
	}
	cluster := &clusterv1.ManagedCluster{}
	l.hub.As(clitest.ClustersPath+"/c1", cluster)
	if cluster.Spec.HubAcceptsClient {
		t.Error("the hub accepts the cluster")
	}
	l.managed.WantUnchanged()
	if len(l.managed.Credentials) != 1 || !l.managed.Credentials["Bearer "+clitest.AdminToken] {
		t.Error("the managed cluster has seen another's credentials")
	}
	stdout, _, err = l.run(t)
	if err != nil || stdout != "No agent of cluster c1 found on the management cluster.\n" {
		t.Errorf("again: %v: %q", err, stdout)
	}
}

func TestUnjoinDetached_NeverAccepted(t *testing.T) {
	l := newLeaving(t)
	l.management.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clitest.DetachedSpace, Name: operatorv1.HubKubeconfigSecret}})
	stdout, _, err := l.run(t, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stdout, `"left": false`, `"removed": true`)
	l.hub.WantAsked()
}

// TestUnjoinDetached_RequiresChoiceForWorks verifies that the user must choose what happens to the objects of works, and that hub-operator gets that choice.
func TestUnjoinDetached_RequiresChoiceForWorks(t *testing.T) {
	l := newLeaving(t)
	l.managed.Put(newRecord("klusterlet-c1", "w1", "one", "two"))
	l.managed.Put(newRecord("another", "w2"))
	_, _, err := l.run(t)
	if err == nil {
		t.Fatal("it goes on")
	}
	clitest.Says(t, command.ErrorLine(err), "the agent has applied 1 work with 2 objects to the managed cluster: choose by --works=delete or --works=keep what happens to the objects")
	l.hub.WantUnchanged()
	l.management.WantUnchanged()
	// The user must also choose if the works cannot be read.
	l.managed.Refuse("GET "+recordsPath, apierrors.NewInternalError(errOf(clitest.AdminToken)))
	_, _, err = l.run(t)
	if err == nil {
		t.Fatal("it goes on")
	}
	clitest.Says(t, command.ErrorLine(err), "checking whether the agent has applied works", "[redacted]", "choose by --works=delete")
	l.management.WantUnchanged()
	if _, _, err := l.run(t, "--works", "delete"); err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, l.management.Bodies["PATCH "+clitest.KlusterletPath], `"operator.clusterhub.dev/works-on-deletion":"Delete"`)
	if l.managed.Get(recordsPath+"/hash-w1") == nil {
		t.Error("the command has ended the work, which is hub-operator's to do")
	}
}

func TestUnjoinDetached_InvalidArguments(t *testing.T) {
	for name, test := range map[string]struct {
		more  []string
		given func(*testing.T, *leaving)
		want  []string
	}{
		"no mode":         {more: []string{"--mode", "default"}, want: []string{"--management-context and --management-kubeconfig are for --mode=detached"}},
		"no rights":       {given: func(_ *testing.T, l *leaving) { l.management.Allow(false) }, want: []string{"this user may not delete klusterlets.operator.open-cluster-management.io", "have an admin of it"}},
		"another cluster": {more: []string{"--klusterlet", "c1", "--cluster-name", "c2"}, want: []string{`Klusterlet c1 is for the cluster "c1" of its hub, not for c2`}},
		"another's": {given: func(_ *testing.T, l *leaving) {
			k := clitest.NewKlusterlet("c1")
			k.Labels = nil
			l.management.Put(k)
		}, want: []string{"Klusterlet c1 was not created by kubectl hub: kubectl delete klusterlet c1 removes it"}},
		"two of that name": {given: func(_ *testing.T, l *leaving) {
			k := clitest.NewKlusterlet("c1-of-blue")
			k.Spec.ClusterName = "c1"
			l.management.Put(k)
		}, want: []string{"several Klusterlets of clusters with the name c1: choose one by --klusterlet: c1, c1-of-blue"}},
		"an agent at home": {more: []string{"--klusterlet", "c1"}, given: func(_ *testing.T, l *leaving) {
			k := clitest.NewKlusterlet("c1")
			k.Spec.DeployOption.Mode = operatorv1.InstallModeDefault
			l.management.Put(k)
		}, want: []string{"Klusterlet c1 has the mode Default: its agent runs on the cluster itself"}},
		"the hub's 401": {given: func(_ *testing.T, l *leaving) {
			l.hub.Refuse("GET "+clitest.ClustersPath+"/c1", apierrors.NewUnauthorized("no"))
		},
			want: []string{"notifying the hub that the cluster leaves", "does not accept the credentials", "--force removes the agent anyway; then run kubectl hub deny -c c1 on the hub"}},
		"an identity by a program": {given: func(t *testing.T, l *leaving) {
			secret := newDetachedIdentity(t, l.hub)
			delete(secret.Data, registration.KeyTLSCert)
			l.management.Put(secret)
		}, want: []string{"has no client certificate of an agent", "--force"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLeaving(t)
			if test.given != nil {
				test.given(t, l)
			}
			_, _, err := l.run(t, test.more...)
			if err == nil {
				t.Fatal("it goes on")
			}
			clitest.Says(t, command.ErrorLine(err), test.want...)
			if l.management.Get(clitest.KlusterletPath) == nil {
				t.Error("the Klusterlet is gone")
			}
		})
	}
}

func TestUnjoinDetached_Force(t *testing.T) {
	l := newLeaving(t)
	l.hub.Refuse("GET "+clitest.ClustersPath+"/c1", apierrors.NewUnauthorized("no"))
	stdout, stderr, err := l.run(t, "--force")
	if err != nil || l.management.Get(clitest.KlusterletPath) != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	clitest.Says(t, stderr, "Warning: the hub was not notified that the cluster leaves")
	clitest.Says(t, stdout, "The agent is removed. This run did not notify the hub; if it has a ManagedCluster c1, delete it there.\n")
}

// TestUnjoinDetached_ForceWithFailingHub verifies that the agent is deleted with --force even if the hub responds with errors.
func TestUnjoinDetached_ForceWithFailingHub(t *testing.T) {
	l := newLeaving(t)
	l.hub.Refuse("GET "+clitest.ClustersPath+"/c1", apierrors.NewServiceUnavailable("later"))
	_, stderr, err := l.run(t, "--force", "--timeout", "2s")
	if err != nil || l.management.Get(clitest.KlusterletPath) != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	clitest.Says(t, stderr, "not within 1s, half of --timeout")
}

// TestUnjoinDetached_Resumes verifies that an unjoin that ends while hub-operator cleans up can be continued.
func TestUnjoinDetached_Resumes(t *testing.T) {
	l := newLeaving(t)
	there := clitest.NewKlusterlet("c1", clitest.Unapplied)
	there.DeletionTimestamp, there.Finalizers = &metav1.Time{Time: clitest.Expiry}, []string{operatorv1.KlusterletFinalizer}
	l.management.On["DELETE "+clitest.KlusterletPath] = func(w http.ResponseWriter, _ []byte) bool {
		l.management.Put(there)
		clitest.WriteJSON(w, http.StatusOK, metav1.Status{Status: "Success"})
		return true
	}
	_, stderr, err := clitest.RunIn(l.management.InterruptedAt("GET "+clitest.KlusterletPath, 3), t, l.config, l.args...)
	if err == nil {
		t.Fatal("it goes on")
	}
	l.hides(t, stderr, err)
	clitest.Says(t, err.Error(), "waiting for the Klusterlet c1 to be gone: interrupted: the managed cluster: no route; its finalizers are")
	delete(l.management.On, "DELETE "+clitest.KlusterletPath)
	if _, _, err := l.run(t); err != nil || l.management.Get(clitest.KlusterletPath) != nil {
		t.Errorf("again: %v", err)
	}
}

func TestUnjoinDetached_LastDeletesOperator(t *testing.T) {
	d := newInstalling(t)
	if _, _, err := d.run(t); err != nil {
		t.Fatal(err)
	}
	l := &leaving{d, []string{"unjoin", "--mode", "detached", "--management-context", "mgmt", "--cluster-name", "c1", "--purge-operator"}}
	d.management.Put(clitest.NewKlusterlet("c2"))
	_, stderr, err := l.run(t)
	if err != nil || d.management.Get(operatorPath) == nil {
		t.Fatalf("%v: it is removed although it is needed: %s", err, stderr)
	}
	clitest.Says(t, stderr, "Warning: hub-operator stays on the management cluster: Klusterlets")
	l.args = clitest.With(l.args, "--cluster-name", "c2")
	_, stderr, err = l.run(t)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stderr, "deployment/hub-operator deleted\n", "customresourcedefinition/klusterlets.operator.open-cluster-management.io deleted\n")
	for _, path := range d.management.Paths() {
		if strings.Contains(path, management.OperatorName) || strings.Contains(path, "customresourcedefinitions") {
			t.Errorf("it has left %s", path)
		}
	}
}

// TestUnjoinDetached_AnnotationIsValid verifies that hub-operator understands the annotation that unjoin sets.
func TestUnjoinDetached_AnnotationIsValid(t *testing.T) {
	l := newLeaving(t)
	for fate, want := range map[string]string{"delete": klusterlet.FateDelete, "keep": klusterlet.FateKeep} {
		l.management.Put(clitest.NewKlusterlet("c1"))
		if _, _, err := l.run(t, "--works", fate); err != nil {
			t.Fatal(err)
		}
		clitest.Says(t, l.management.Bodies["PATCH "+clitest.KlusterletPath], `"`+klusterlet.AnnotationWorks+`":"`+want+`"`)
	}
}

func TestWayOf_RejectsFilesAndPrograms(t *testing.T) {
	for name, data := range map[string]string{
		"a program":      `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"clusters":[{"name":"a","cluster":{"server":"https://h"}}],"users":[{"name":"a","user":{"exec":{"command":"/bin/false","apiVersion":"client.authentication.k8s.io/v1","interactiveMode":"Never"}}}]}`,
		"a file":         `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"clusters":[{"name":"a","cluster":{"server":"https://h","certificate-authority":"/etc/passwd"}}],"users":[{"name":"a","user":{"tokenFile":"/etc/passwd"}}]}`,
		"in the clear":   `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a"}}],"clusters":[{"name":"a","cluster":{"server":"http://h"}}]}`,
		"no context":     `{"current-context":"b"}`,
		"not a mapping":  `[1`,
		"nothing at all": ``,
	} {
		certificate, key, err := cert.GenerateSelfSignedCertKey("agent", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		config, err := join.WayOf(&corev1.Secret{Data: map[string][]byte{registration.KeyKubeconfig: []byte(data), registration.KeyTLSCert: certificate, registration.KeyTLSKey: key}})
		if err == nil && (config.ExecProvider != nil || config.CAFile != "" || config.BearerTokenFile != "" || !strings.HasPrefix(config.Host, "https://")) {
			t.Errorf("%s: it goes by %+v", name, config)
		}
		if err == nil && (name == "in the clear" || name == "no context") {
			t.Errorf("%s: it is taken", name)
		}
	}
}
