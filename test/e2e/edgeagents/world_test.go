// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeagents

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

// These are names on the hub: the nodes, the deployer, and the owner of the first team's node.
const (
	whole, ofABC, ofXYZ = "rome", "rome-abc", "rome-xyz"
	deployer, owner     = "dora", "olga"
	shop                = "shop"
)

// byDefault is the default namespace of services on a cluster with an agent of the whole cluster.
const byDefault = "openhorizon-agent"

// world is a hub, and a cluster with agents.
type world struct {
	*testing.T
	hub, cluster *localhub.Instance
	// admins has an admin's contexts for both; ann is an admin of the cluster's namespace abc only, and xander of xyz.
	admins, ann, xander harness.Plugin
	way                 harness.Joining
}

// onHub has the objects that an admin of the hub creates: the set, and the rights of its users.
const onHub = `
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: edge}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: edge, namespace: shop}
spec: {clusterSet: edge}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: dora}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployer-sees-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "clusterhub:edge-nodes-viewer"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: dora}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sees-set-edge}
rules: [{apiGroups: [cluster.open-cluster-management.io], resources: [managedclustersets, managedclustersets/clusters], resourceNames: [edge], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployer-sees-set}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sees-set-edge}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: dora}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: owner-writes-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "clusterhub:edge-nodes"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: olga}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: owner-of-rome-abc}
rules: [{apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], resourceNames: [rome-abc], verbs: [get, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: owner-of-rome-abc}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: owner-of-rome-abc}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: olga}]
`

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, hub: harness.Hub(t)}
	w.cluster = harness.OwnHub(t, func(c *localhub.Options) { c.Plain = true })
	hub := harness.Must(url.Parse(w.hub.AdminConfig().Host))(t)
	kubelet.Start(t, kubelet.Config{Cluster: w.cluster.AdminConfig(), BinDir: harness.BinDir(t), ImagesDir: harness.ImagesDir(), Reach: []string{hub.Host}})
	w.admins = harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"hub": w.hub, "rome": w.cluster})}
	w.way = w.admins.Joining(t, "init", "--context", "hub")
	harness.MustKubectlOf(t, w.hub, onHub, "apply", "-f", "-")

	harness.MustKubectlOf(t, w.cluster, "", "create", "namespace", "people")
	w.ann, w.xander = w.team("ann", "abc"), w.team("xander", "xyz")
	w.installWhole()
	w.installIn(w.ann, "abc", ofABC)
	w.installIn(w.xander, "xyz", ofXYZ)
	w.admins.Must(t, "accept", "--clusters", strings.Join([]string{whole, ofABC, ofXYZ}, ","), "--wait", "--timeout", harness.Timeout.String(), "--context", "hub")
	harness.MustKubectlOf(t, w.hub, "", "label", "managedclusters", whole, ofABC, ofXYZ, harness.SetLabel+"=edge", "--overwrite")
	w.nodesAre(t, "rome openhorizon-agent false", "rome-abc abc true", "rome-xyz xyz true")
	return w
}

// nodesAre waits until the agents have reported their namespaces.
func (w *world) nodesAre(t *testing.T, want ...string) {
	t.Helper()
	w.says("the nodes", strings.Join(want, "\n"), w.hub, "get", "edgenodes", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.namespace} {.status.namespaceScoped}{"\n"}{end}`)
}

// team returns a user of the cluster who is an admin of one namespace, and has no other rights.
func (w *world) team(name, namespace string) harness.Plugin {
	w.Helper()
	harness.MustKubectlOf(w.T, w.cluster, "", "create", "namespace", namespace)
	harness.MustKubectlOf(w.T, w.cluster, "", "create", "serviceaccount", name, "-n", "people")
	harness.MustKubectlOf(w.T, w.cluster, "", "create", "rolebinding", name, "-n", namespace, "--clusterrole=admin", "--serviceaccount=people:"+name)
	config := w.cluster.AdminConfig()
	token := harness.Must(harness.Kube(w.T, config).CoreV1().ServiceAccounts("people").
		CreateToken(w.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(w.T)
	file := filepath.Join(w.TempDir(), name)
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"rome": {Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"rome": {Cluster: "rome", AuthInfo: name, Namespace: namespace}},
		CurrentContext: "rome",
	}, file); err != nil {
		w.Fatal(err)
	}
	// kube-controller-manager must aggregate the rules of the role once, and the authorizer must observe the binding.
	for _, right := range []string{"get pods", "create deployments", "create rolebindings"} {
		args := append([]string{"auth", "can-i", "-n", namespace, "--as=system:serviceaccount:people:" + name}, strings.Fields(right)...)
		w.says(name+" may "+right, "yes", w.cluster, args...)
	}
	return harness.Plugin{Kubeconfig: file}
}

// toHub returns the flags with which an agent connects to the hub.
func (w *world) toHub() []string {
	return []string{"--hub-token", w.way.Token, "--hub-apiserver", w.way.Server, "--ca-data", w.way.CA}
}

func (w *world) installWhole() {
	w.Helper()
	w.admins.Must(w.T, append([]string{"agent", "install", "--cluster-name", whole, "--works=cluster-admin", "--context", "rome"}, w.toHub()...)...)
}

func (w *world) installIn(as harness.Plugin, namespace, name string, more ...string) {
	w.Helper()
	args := append([]string{"agent", "install", "--namespace", namespace, "--cluster-name", name}, more...)
	as.Must(w.T, append(args, w.toHub()...)...)
}

// eventually waits until a condition holds. It prints the last error if the condition never holds.
func (w *world) eventually(what string, ok func() error) {
	w.Helper()
	harness.Eventually(w.T, what, func(context.Context) (bool, error) {
		err := ok()
		return err == nil, err
	})
}

// says waits until kubectl prints exactly this, as an admin.
func (w *world) says(what, want string, on *localhub.Instance, args ...string) {
	w.Helper()
	w.eventually(what, func() error {
		out, err := on.Kubectl(w.Context(), args...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			return fmt.Errorf("kubectl %s says %q, %v, want %q", strings.Join(args, " "), got, err, want)
		}
		return nil
	})
}

// as runs kubectl as a user of the hub. It returns the output, including warnings.
func (w *world) as(user, stdin string, args ...string) (string, error) {
	w.Helper()
	cmd := w.hub.Kubectl(w.Context(), append(args, "--as", user)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mustAs is as for a command that must succeed.
func (w *world) mustAs(user, stdin string, args ...string) string {
	w.Helper()
	out, err := w.as(user, stdin, args...)
	if err != nil {
		w.Fatalf("kubectl %s --as %s: %v: %s", strings.Join(args, " "), user, err, out)
	}
	return out
}
