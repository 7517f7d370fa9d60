// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// togetherConfig grants each request a cluster of its own, in its namespace. Teams may access only their own clusters, and not with all rights.
const togetherConfig = `
scheduler:
  purposeMappings:
    workload:
      template: {spec: {profile: test.here.default, tenancy: Exclusive}}
  policy:
    accessRequests:
    - name: operators
      expression: namespaceObject.metadata.name == 'ops'
    - name: teams
      expression: cluster.metadata.namespace == request.metadata.namespace && roleRefs.all(r, r.name == 'view')
`

// TestAccessTogether runs all components as in production: real processes, each with the rights of its manifests.
func TestAccessTogether(t *testing.T) {
	h := newAccessHub(t, togetherConfig)
	startControllers(t, h.hub, "--scheduler-config="+h.schedulerConfig)
	dir := h.localProvider(t, "here")
	h.namespace(t, "ops")
	ann := h.team(t, "team-a")
	t.Run("from request to end", func(t *testing.T) { h.fromRequestToEnd(t, ann, dir) })
	t.Run("isolation", func(t *testing.T) { newIsolation(t, h, ann, dir).run(t) })
}

// fromRequestToEnd runs the workflow of a user with kubectl.
func (h *accessHub) fromRequestToEnd(t *testing.T, ann, dir string) {
	jsonpath := func(path string, args ...string) string {
		t.Helper()
		return h.must(t, ann, "", append([]string{"get", "-n", "team-a", "-o", "jsonpath={" + path + "}"}, args...)...)
	}
	await := func(what, path, value string) {
		t.Helper()
		h.must(t, ann, "", "wait", what, "-n", "team-a", "--for=jsonpath={"+path+"}="+value, "--timeout="+harness.Timeout.String())
	}

	// Request a cluster.
	h.must(t, ann, `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: ClusterRequest
metadata: {namespace: team-a, name: mine}
spec: {purpose: workload}
`, "apply", "-f", "-")
	await("clusterrequest/mine", ".status.phase", "Granted")
	name := jsonpath(".status.cluster.name", "clusterrequest/mine")
	// Request access to it before it exists.
	request := func(name, spec string) {
		t.Helper()
		h.must(t, ann, `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: AccessRequest
metadata: {namespace: team-a, name: `+name+`}
spec: `+spec, "apply", "-f", "-")
	}
	const byRequest = "requestRef: {namespace: team-a, name: mine}"
	request("mine", "{"+byRequest+`, ttl: 2h, token: {permissions: [
  {namespace: web, rules: [{apiGroups: [""], resources: [configmaps], verbs: [list, create]}]}]}}`)
	request("too-much", "{"+byRequest+", token: {roleRefs: [{kind: ClusterRole, name: cluster-admin}]}}")
	await("cluster/"+name, ".status.phase", "Ready")
	await("accessrequest/mine", ".status.phase", "Granted")
	await("accessrequest/too-much", ".status.phase", "Denied")
	h.must(t, ann, "", "delete", "accessrequest/too-much", "-n", "team-a", "--timeout="+harness.Timeout.String())

	// The access has exactly the requested rights.
	secret := jsonpath(".status.secretRef.name", "accessrequest/mine")
	mine := writeKubeconfig(t, jsonpath(".data.kubeconfig", "secret/"+secret))
	useConfigMaps := func(kubeconfig string) {
		t.Helper()
		h.must(t, kubeconfig, "", "create", "configmap", harness.Unique("made"), "-n", "web")
		h.must(t, kubeconfig, "", "get", "configmaps", "-n", "web")
		for _, refused := range []string{
			"get secrets -n web", "delete configmaps --all -n web", "get configmaps -n default", "get nodes",
			"get secrets -n accessrequests", "create token default -n web",
			"create clusterrolebinding mine --clusterrole=cluster-admin --user=me",
		} {
			out := h.refused(t, kubeconfig, "", strings.Fields(refused)...)
			harness.Contains(t, out, `is forbidden: User "system:serviceaccount:accessrequests:`)
		}
	}
	useConfigMaps(mine)

	// This access expires.
	request("brief", "{"+byRequest+", ttl: 15s, token: {roleRefs: [{kind: ClusterRole, name: view}]}}")
	await("accessrequest/brief", ".status.phase", "Granted")
	brief := writeKubeconfig(t, jsonpath(".data.kubeconfig", "secret/brief.kubeconfig"))
	h.must(t, brief, "", "get", "configmaps", "-n", "web")

	// This token is stored nowhere.
	path := "/apis/clusters.openmcp.cloud/v1alpha1/namespaces/team-a/accessrequests/mine/token"
	minted := &v1alpha1.AccessToken{}
	const body = `{"apiVersion":"clusters.openmcp.cloud/v1alpha1","kind":"AccessToken"}`
	if err := json.Unmarshal([]byte(h.must(t, ann, body, "create", "--raw", path, "-f", "-")), minted); err != nil {
		t.Fatal(err)
	}
	shortLived := writeKubeconfig(t, minted.Status.Kubeconfig)
	useConfigMaps(shortLived)
	if left := time.Until(minted.Status.ExpirationTimestamp.Time); left < 50*time.Minute || left > 70*time.Minute {
		t.Errorf("the token is valid for %s", left)
	}

	// One command does all steps.
	p := harness.Plugin{Kubeconfig: ann}
	p.Must(t, "access", name, "-n", "team-a", "--cluster-role=view", "--timeout="+harness.Timeout.String())
	viewer := []string{"--context", "team-a--" + name}
	h.must(t, ann, "", append(viewer, "get", "configmaps", "-A")...)
	harness.Contains(t, h.refused(t, ann, "", append(viewer, "get", "secrets", "-A")...), "is forbidden")
	harness.Contains(t, h.refused(t, ann, "", append(viewer, "create", "configmap", "x")...), "is forbidden")

	// An operator also has access, which the rest must not affect.
	cluster := object(t, h, "team-a", name, &v1alpha1.Cluster{})
	operator := h.create(t, "ops", "operator", cluster, withRole("cluster-admin"))
	target := clientOf(t, h.granted(t, operator))

	// The request is no longer needed.
	kept := writeKubeconfig(t, string(harness.Must(os.ReadFile(ann))(t)))
	h.must(t, ann, "", "delete", "accessrequest/mine", "-n", "team-a", "--timeout="+harness.Timeout.String())
	p.Must(t, "access", name, "-n", "team-a", "--revoke")
	harness.Contains(t, h.refused(t, kept, "", append(viewer, "get", "configmaps")...), "AccessRequest", "does not exist any more")
	h.must(t, ann, "", "wait", "accessrequest/brief", "-n", "team-a", "--for=delete", "--timeout="+harness.Timeout.String())
	for _, kubeconfig := range []string{mine, shortLived, brief} {
		h.useless(t, harness.Must(os.ReadFile(kubeconfig))(t))
	}
	h.nothingLeft(t, target, operator)

	// The cluster is deleted once no request uses it.
	h.must(t, ann, "", "delete", "clusterrequest/mine", "-n", "team-a", "--wait=false")
	harness.Eventually(t, "the Cluster waits", func(ctx context.Context) (bool, error) {
		err := h.client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
		text := fmt.Sprint(cluster.Status.Conditions)
		if strings.Contains(text, "operator") {
			t.Errorf("somebody else's request is told of in team-a: %s", text)
		}
		return strings.Contains(text, "the Cluster stays until its AccessRequests are deleted: 1"), err
	})
	harness.Must(target.CoreV1().Nodes().List(t.Context(), listOptions()))(t)
	if err := h.client.Delete(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	h.awaitGone(t, operator, cluster)
	h.must(t, ann, "", "wait", "clusterrequest/mine", "-n", "team-a", "--for=delete", "--timeout="+harness.Timeout.String())
	if _, err := target.Discovery().ServerVersion(); err == nil || apierrors.IsUnauthorized(err) {
		t.Errorf("the cluster is still there: %v", err)
	}
	h.nothingLeft(t, nil)
	nothingStored(t, dir)
}

// useless waits until a cluster rejects a token. Until then the token must grant no rights.
func (h *accessHub) useless(t *testing.T, kubeconfig []byte) {
	t.Helper()
	user := clientOf(t, kubeconfig)
	harness.Eventually(t, "the token is forgotten", func(ctx context.Context) (bool, error) {
		_, err := user.CoreV1().ConfigMaps("web").List(ctx, listOptions())
		if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
			t.Fatalf("the access goes on: %v", err)
		}
		return harness.Holds(apierrors.IsUnauthorized(err), err)
	})
}

// nothingLeft checks that all objects of providers belong to existing requests. The target is nil if it is gone.
func (h *accessHub) nothingLeft(t *testing.T, target kubernetes.Interface, there ...*v1alpha1.AccessRequest) {
	t.Helper()
	expected := sets.New[string]()
	for _, ar := range there {
		expected.Insert(ar.Namespace+"/"+ar.Status.SecretRef.Name, v1alpha1.TokenSourceNamespace+"/"+string(ar.UID))
	}
	secrets := &corev1.SecretList{}
	if err := h.client.List(t.Context(), secrets); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		_, made := secret.Labels[v1alpha1.ManagedByLabel]
		name := secret.Namespace + "/" + secret.Name
		if (made || secret.Namespace == v1alpha1.TokenSourceNamespace) && !expected.Has(name) {
			t.Errorf("the Secret %s is left", name)
		}
		expected.Delete(name)
	}
	if len(expected) > 0 {
		t.Errorf("the Secrets %v are gone", sets.List(expected))
	}
	if target == nil {
		return
	}
	for _, object := range made(t, target) {
		if !slices.ContainsFunc(there, func(ar *v1alpha1.AccessRequest) bool { return strings.Contains(object, " "+ar.Name+" ") }) {
			t.Errorf("in the cluster, %s is left", object)
		}
	}
}

// nothingStored checks that a provider of the kind local has no clusters.
func nothingStored(t *testing.T, dir string) {
	t.Helper()
	if folders := harness.Must(os.ReadDir(filepath.Join(dir, "clusters")))(t); len(folders) > 0 {
		t.Errorf("the provider still has %v", folders)
	}
	file := func(name string) string { return filepath.Join(dir, "etcd", name) }
	var ports struct{ ClientPort int }
	if err := json.Unmarshal(harness.Must(os.ReadFile(file("etcd.json")))(t), &ports); err != nil {
		t.Fatal(err)
	}
	tls := harness.Must(transport.TLSInfo{
		TrustedCAFile: file("pki/ca.crt"), CertFile: file("pki/client.crt"), KeyFile: file("pki/client.key"),
	}.ClientConfig())(t)
	endpoint := fmt.Sprintf("https://127.0.0.1:%d", ports.ClientPort)
	etcd := harness.Must(clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: tls}))(t)
	defer etcd.Close()
	stored := harness.Must(etcd.Get(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(10)))(t)
	if stored.Count > 0 {
		t.Errorf("etcd still has %d keys, such as %s", stored.Count, stored.Kvs[0].Key)
	}
}
