// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// These are components whose identity may be compromised. hubAgent is an agent of the cluster c1 on the hub, spokeAgent the same agent on its own
// cluster.
const (
	apiserverSA = "hub-apiserver"
	managerSA   = "hub-controller-manager"
	approverSA  = "hub-certificate-approver"
	providerSA  = "cluster-provider-kubeconfig"
	hubAgent    = "an agent of c1"
	spokeAgent  = "an agent on its cluster"
	bootstrap   = "a bootstrap identity"
)

// worthHub is a hub with the manifests of artifacts/deploy, without its processes but with audit logs. One test at a time uses it; the objects of a
// test remain.
type worthHub struct {
	turn       sync.Mutex
	components []string
	hub        *localhub.Instance
	accepted   bool
}

var (
	// ofAllAgents has one role for all agents. perCluster has a role for each cluster, which gives hub-controller-manager the most rights.
	ofAllAgents worthHub
	perCluster  = worthHub{components: []string{agentroles.PerClusterComponent}}
)

// worth is a hub on which a test acts as each of its components.
type worth struct {
	*testing.T
	hub   *localhub.Instance
	admin kubernetes.Interface
	users map[string]identity
	on    *worthHub
}

type identity struct {
	name   string
	groups []string
	client client.Client
}

func newWorth(t *testing.T, on *worthHub) *worth {
	t.Helper()
	harness.OnlyLocal(t, "a hub without controllers")
	on.turn.Lock()
	t.Cleanup(on.turn.Unlock)
	began := on.hub == nil
	if began {
		config := harness.HubConfig(harness.Lasting().TempDir())
		config.WithoutHubControllerManager, config.WithoutKubeControllerManager, config.Components = true, true, on.components
		withAuditLogs(t, &config)
		on.hub = harness.Must(localhub.Start(t.Context(), config))(t)
		harness.Lasting().Cleanup(on.hub.Kill)
	}
	w := &worth{T: t, hub: on.hub, admin: harness.Kube(t, on.hub.AdminConfig()), users: map[string]identity{}, on: on}
	for name, namespace := range map[string]string{
		apiserverSA: "clusterhub-system", managerSA: "clusterhub-system", approverSA: "clusterhub-system", providerSA: "openmcp-system",
	} {
		w.add(name, "system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	w.add(hubAgent, registration.ClusterUser("c1", "agent"), registration.ClusterGroup("c1"), registration.ManagedClustersGroup)
	w.add(spokeAgent, "system:serviceaccount:"+registration.AgentNamespace+":"+registration.AgentServiceAccount)
	w.add(bootstrap, registration.BootstrapServiceAccount)
	if !began {
		return w
	}
	h := on.hub
	harness.MustKubectlOf(t, h, "", "apply", "--server-side", "-k", harness.Overlay("cluster-provider"))
	harness.MustKubectlOf(t, h, w.read("bootstrap"), "apply", "--server-side", "-f", "-")
	agent := strings.Split(w.read("agent"), "\n---\n")
	agent = slices.DeleteFunc(agent, func(object string) bool { return strings.Contains(object, "kind: Deployment") })
	harness.MustKubectlOf(t, h, strings.Join(agent, "\n---\n"), "apply", "--server-side", "-f", "-")
	w.awaitPolicies()
	return w
}

// read reads the manifest of a component from a folder.
func (w *worth) read(folder string) string {
	w.Helper()
	return string(harness.Must(os.ReadFile(filepath.Join(harness.Overlay(folder), folder+".yaml")))(w.T))
}

func (w *worth) add(as, name string, groups ...string) {
	w.Helper()
	groups = append(groups, "system:authenticated")
	w.users[as] = identity{name: name, groups: groups, client: harness.Must(client.New(w.hub.UserConfig(name, groups...), client.Options{}))(w.T)}
}

// awaitPolicies waits until both servers enforce the last policies of the file. Servers observe policies in their order.
func (w *worth) awaitPolicies() {
	w.Helper()
	w.asAdmin().create(managedCluster("c1"))
	w.asAdmin().create(managedCluster("c2"))
	for as, refused := range map[string]func() error{
		apiserverSA: func() error { return w.as(apiserverSA).patch(apiService, `{"spec":{"versionPriority":99}}`) },
		approverSA: func() error {
			return w.as(approverSA).patchStatus(managedCluster("c1"), `{"status":{"version":{"kubernetes":"v1.0.0"}}}`)
		},
	} {
		harness.Eventually(w.T, "the policies are in force", func(context.Context) (bool, error) {
			err := refused()
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				return false, fmt.Errorf("%s: %w", as, err)
			}
			return true, nil
		})
	}
}

// actor makes the tested requests in dry run.
type actor struct {
	*worth
	client.Client
	dry bool
}

func (w *worth) as(component string) actor {
	return actor{worth: w, Client: w.users[component].client, dry: true}
}

// asAdmin creates the existing objects, whatever their creator would be.
func (w *worth) asAdmin() surely {
	return surely{actor{worth: w, Client: harness.Must(client.New(w.hub.AdminConfig(), client.Options{}))(w.T)}}
}

type surely struct{ actor }

func (m surely) create(manifest string) {
	m.Helper()
	if err := m.actor.create(manifest); err != nil {
		m.Fatalf("%v: %s", err, manifest)
	}
}

func (a actor) object(manifest string) *unstructured.Unstructured {
	a.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		a.Fatalf("%v: %s", err, manifest)
	}
	return object
}

func (a actor) create(manifest string) error {
	a.Helper()
	var options []client.CreateOption
	if a.dry {
		options = append(options, client.DryRunAll)
	}
	return a.Create(a.Context(), a.object(manifest), options...)
}

// apply is for actors that may create an object of one name only.
func (a actor) apply(manifest string) error {
	a.Helper()
	options := []client.ApplyOption{client.FieldOwner("test"), client.ForceOwnership}
	if a.dry {
		options = append(options, client.DryRunAll)
	}
	return a.Apply(a.Context(), client.ApplyConfigurationFromUnstructured(a.object(manifest)), options...)
}

func (a actor) patch(manifest, body string) error {
	a.Helper()
	return a.Patch(a.Context(), a.object(manifest), client.RawPatch("application/merge-patch+json", []byte(body)), client.DryRunAll)
}

// update sets one field of an existing object.
func (a actor) update(manifest string, value any, field ...string) error {
	a.Helper()
	object := a.object(manifest)
	if err := a.asAdmin().Get(a.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		a.Fatal(err)
	}
	if err := unstructured.SetNestedField(object.Object, value, field...); err != nil {
		a.Fatal(err)
	}
	return a.Update(a.Context(), object, client.DryRunAll)
}

func (a actor) patchStatus(manifest, body string) error {
	a.Helper()
	return a.Status().Patch(a.Context(), a.object(manifest), client.RawPatch("application/merge-patch+json", []byte(body)), client.DryRunAll)
}

func (a actor) list(kind, namespace string) error {
	a.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind(kind + "List")
	return a.List(a.Context(), list, client.InNamespace(namespace))
}

func (a actor) delete(manifest string) error {
	a.Helper()
	return a.Delete(a.Context(), a.object(manifest), client.DryRunAll)
}

// want compares the result of a request with the expected one.
func (w *worth) want(as, what string, allowed bool, err error) {
	w.Helper()
	switch {
	case allowed && err != nil:
		w.Errorf("%s: %s: is refused, and should not be: %v", as, what, err)
	case !allowed && err == nil:
		w.Errorf("%s: %s: is allowed", as, what)
	case !allowed && !apierrors.IsForbidden(err):
		w.Errorf("%s: %s: %v, want 403", as, what, err)
	}
}

// worthRight is an RBAC right. A resource is GROUP/RESOURCE/SUBRESOURCE, where the group and the subresource may be empty.
type worthRight struct{ verb, resource, namespace, name string }

func (r worthRight) String() string {
	return fmt.Sprintf("%s %s %s/%s", r.verb, r.resource, r.namespace, r.name)
}

// TestWorth_PowerfulRights lists the holders of each right that permits impersonation, escalation, or granting access to others. No
// component has a right that is in no list.
func TestWorth_PowerfulRights(t *testing.T) {
	t.Parallel()
	w := newWorth(t, &ofAllAgents)
	w.accept()
	const (
		rbac, certificates, admission = "rbac.authorization.k8s.io", "certificates.k8s.io", "admissionregistration.k8s.io"
		clusters, openmcp             = "cluster.open-cluster-management.io", "clusters.openmcp.cloud"
		works                         = "work.open-cluster-management.io"
	)
	for r, has := range map[worthRight][]string{
		{"bind", rbac + "/clusterroles/", "", "cluster-admin"}:   nil,
		{"escalate", rbac + "/clusterroles/", "", "any"}:         nil,
		{"escalate", rbac + "/roles/", "kube-system", "any"}:     nil,
		{"create", rbac + "/roles/", "kube-system", ""}:          nil,
		{"update", rbac + "/clusterroles/", "", "any"}:           nil,
		{"impersonate", "/users/", "", "admin"}:                  nil,
		{"impersonate", "/groups/", "", "system:masters"}:        nil,
		{"impersonate", "/serviceaccounts/", "kube-system", "a"}: nil,

		{"create", "/serviceaccounts/token", "kube-system", "a"}:        nil,
		{"create", "/serviceaccounts/token", "clusterhub-system", "a"}:  nil,
		{"create", "/pods/", "kube-system", ""}:                         nil,
		{"create", "/pods/", "clusterhub-system", ""}:                   nil,
		{"create", "/pods/exec", "kube-system", "a"}:                    nil,
		{"create", "/pods/exec", "clusterhub-system", "a"}:              nil,
		{"patch", "apps/deployments/", "clusterhub-system", managerSA}:  nil,
		{"get", "/secrets/", "kube-system", "a"}:                        nil,
		{"list", "/secrets/", "kube-system", ""}:                        nil,
		{"list", "/secrets/", "clusterhub-system", ""}:                  nil,
		{"get", "/secrets/", "clusterhub-system", "a"}:                  nil,
		{"create", "/secrets/", "kube-system", ""}:                      nil,
		{"update", "/configmaps/", "kube-system", "aws-auth"}:           nil,
		{"update", "/configmaps/", "clusterhub-system", "a"}:            nil,
		{"proxy", "/nodes/", "", "a"}:                                   nil,
		{"create", "/nodes/proxy", "", "a"}:                             nil,
		{"create", "apiregistration.k8s.io/apiservices/", "", "a"}:      nil,
		{"patch", "apiregistration.k8s.io/apiservices/", "", "v1.apps"}: nil,

		{"create", admission + "/validatingadmissionpolicies/", "", ""}:         nil,
		{"delete", admission + "/validatingadmissionpolicies/", "", "a"}:        nil,
		{"patch", admission + "/validatingadmissionpolicies/", "", "a"}:         nil,
		{"delete", admission + "/validatingadmissionpolicybindings/", "", "a"}:  nil,
		{"patch", admission + "/validatingadmissionpolicybindings/", "", "a"}:   nil,
		{"create", admission + "/mutatingwebhookconfigurations/", "", ""}:       nil,
		{"create", admission + "/mutatingadmissionpolicies/", "", ""}:           nil,
		{"create", admission + "/validatingwebhookconfigurations/", "", ""}:     nil,
		{"sign", certificates + "/signers/", "", registration.SignerName}:       nil,
		{"approve", certificates + "/signers/", "", "kubernetes.io/legacy"}:     nil,
		{"update", certificates + "/certificatesigningrequests/status", "", ""}: nil,

		{"update", clusters + "/managedclusters/accept", "", "c1"}:                       nil,
		{"update", "register.open-cluster-management.io/managedclusters/accept", "", ""}: nil,
		{"delete", clusters + "/managedclusters/", "", "c1"}:                             nil,
		{"create", clusters + "/managedclusters/label", "", harness.SetLabel + ":prod"}:  nil,
		{"create", clusters + "/managedclustersets/bind", "", "prod"}:                    nil,
		// The front forwards the requests of all agents to hub-apiserver, which rejects them: see TestWorth_OfAgent.
		{"update", clusters + "/managedclusters/", "", "c2"}:          {hubAgent},
		{"update", clusters + "/managedclusters/", "", "c1"}:          {hubAgent},
		{"update", clusters + "/managedclusters/status", "", "c2"}:    {hubAgent},
		{"patch", clusters + "/managedclusters/", "", "c2"}:           {managerSA},
		{"patch", clusters + "/placements/", "default", "a"}:          nil,
		{"update", clusters + "/placementdecisions/", "default", "a"}: nil,
		{"patch", clusters + "/placements/status", "default", "a"}:    {managerSA},
		{"create", openmcp + "/accessrequests/", "default", ""}:       nil,
		{"create", openmcp + "/accessrequests/token", "default", "a"}: nil,
		{"access", openmcp + "/clusters/", "default", "a"}:            nil,
		{"patch", openmcp + "/accessrequests/status", "default", "a"}: {managerSA, providerSA},
		{"patch", openmcp + "/accessrequests/", "default", "a"}:       {managerSA, providerSA},

		// Policies restrict these to its task.
		{"create", clusters + "/placementdecisions/", "default", ""}:       {managerSA},
		{"patch", clusters + "/placementdecisions/", "default", "a"}:       {managerSA},
		{"patch", clusters + "/placementdecisions/status", "default", "a"}: {managerSA},
		{"create", works + "/manifestworks/", "default", ""}:               {managerSA},
		// hub-apiserver restricts the agent to works of its cluster: TestWorth_OfAgent.
		{"patch", works + "/manifestworks/", "default", "a"}:                                {managerSA, hubAgent},
		{"list", works + "/manifestworks/", "default", ""}:                                  {managerSA, hubAgent},
		{"delete", works + "/manifestworks/", "default", "a"}:                               {managerSA},
		{"execute-as", works + "/manifestworks/", "default", "system:serviceaccount:a:b"}:   {managerSA},
		{"patch", works + "/manifestworkreplicasets/", "default", "a"}:                      {managerSA},
		{"patch", works + "/manifestworkreplicasets/status", "default", "a"}:                {managerSA},
		{"update", works + "/manifestworkreplicasets/finalizers", "default", "a"}:           {managerSA},
		{"create", works + "/manifestworkreplicasetrevisions/", "default", ""}:              {managerSA},
		{"delete", works + "/manifestworkreplicasetrevisions/", "default", "a"}:             {managerSA},
		{"patch", works + "/manifestworkreplicasetrevisions/", "default", "a"}:              nil,
		{"create", clusters + "/addonplacementscores/", "default", ""}:                      nil,
		{"approve", certificates + "/signers/", "", registration.SignerName}:                {approverSA},
		{"update", certificates + "/certificatesigningrequests/approval", "", "a"}:          {approverSA},
		{"create", certificates + "/certificatesigningrequests/", "", ""}:                   {hubAgent, bootstrap},
		{"list", certificates + "/certificatesigningrequests/", "", ""}:                     {approverSA},
		{"delete", certificates + "/certificatesigningrequests/", "", "a"}:                  {approverSA},
		{"create", rbac + "/clusterrolebindings/", "", ""}:                                  nil,
		{"patch", rbac + "/clusterrolebindings/", "", "a"}:                                  nil,
		{"create", rbac + "/clusterrolebindings/", "", agentroles.ClusterRole}:              {managerSA},
		{"delete", rbac + "/clusterrolebindings/", "", "a"}:                                 {managerSA},
		{"bind", rbac + "/clusterroles/", "", agentroles.ClusterRole}:                       {managerSA},
		{"create", rbac + "/rolebindings/", "kube-system", ""}:                              {managerSA},
		{"create", rbac + "/clusterroles/", "", ""}:                                         nil,
		{"patch", rbac + "/clusterroles/", "", "a"}:                                         nil,
		{"delete", rbac + "/clusterroles/", "", "a"}:                                        {managerSA},
		{"patch", "/configmaps/", record.Namespace, "c1"}:                                   {managerSA, approverSA},
		{"create", "/configmaps/", record.Namespace, ""}:                                    {managerSA},
		{"delete", "/configmaps/", record.Namespace, "c1"}:                                  {managerSA},
		{"get", "/configmaps/", record.Namespace, "c1"}:                                     {managerSA, approverSA},
		{"bind", rbac + "/clusterroles/", "", registration.InspectorClusterRole}:            {managerSA},
		{"delete", "/namespaces/", "", "default"}:                                           {managerSA},
		{"create", "/namespaces/", "", ""}:                                                  {managerSA, spokeAgent},
		{"patch", "/namespaces/", "", "default"}:                                            {spokeAgent},
		{"create", "coordination.k8s.io/leases/", "kube-system", ""}:                        {managerSA},
		{"delete", "coordination.k8s.io/leases/", "kube-system", "kube-controller-manager"}: nil,
		{"patch", "coordination.k8s.io/leases/", "kube-system", "kube-controller-manager"}:  nil,
		{"create", "/secrets/", "clusterhub-system", ""}:                                    {apiserverSA},

		// These are the tasks of components. Token sources are the Secrets by which access to clusters is granted.
		{"get", "/secrets/", "clusterhub-access", "a"}:   {apiserverSA, providerSA},
		{"create", "/secrets/", "clusterhub-access", ""}: {providerSA},
		{"list", "/secrets/", "openmcp-system", ""}:      {providerSA},
		{"get", "/secrets/", "default", "a"}:             nil,
		// These authorize requests to the API and to metrics.
		{"create", "authentication.k8s.io/tokenreviews/", "", ""}:                  {apiserverSA, managerSA},
		{"create", clusters + "/managedclusters/", "", ""}:                         {bootstrap},
		{"get", "/secrets/", registration.AgentNamespace, "hub-kubeconfig-secret"}: {spokeAgent},
	} {
		for as, user := range w.users {
			parts := strings.Split(r.resource, "/")
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user.name, Groups: user.groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: r.verb, Group: parts[0], Resource: parts[1], Subresource: parts[2], Namespace: r.namespace, Name: r.name,
				},
			}}
			answer := harness.Must(w.admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{}))(t)
			if want := slices.Contains(has, as); answer.Status.Allowed != want {
				t.Errorf("%s: %s: %t, want %t (%s)", as, r, answer.Status.Allowed, want, answer.Status.Reason)
			}
		}
	}
}
