// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const (
	self       = "system:serviceaccount:clusterhub-system:" + managerSA
	agentRules = `{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get]},
		{apiGroups: [register.open-cluster-management.io], resources: [managedclusters/clientcertificates], verbs: [renew]},
		{apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], resourceNames: [c1], verbs: [get, list, update, watch]},
		{apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters/status], resourceNames: [c1], verbs: [patch, update]},
		{apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters/leave], resourceNames: [c1], verbs: [update]}`
)

// accept creates the objects of an accepted cluster c1, as hub-controller-manager, unless a previous test has.
func (w *worth) accept() {
	w.Helper()
	if w.on.accepted {
		return
	}
	w.on.accepted = true
	as := surely{w.as(managerSA)}
	as.dry = false
	as.create(clusterNamespace("c1", "c1"))
	as.create(recordOf("c1", "driver: csr, record: '', cluster-uid: a"))
	// kube-controller-manager, which this hub lacks, creates it in every namespace.
	w.asAdmin().create(configMap(record.Namespace, "kube-root-ca.crt", "", "ca.crt: a"))
	if w.on == &perCluster {
		as.create(roleOf(clusterMap+"c1", agentRules))
		as.create(clusterBinding(clusterMap+"c1", clusterMap+"c1", asGroup(registration.ClusterGroup("c1"))+","+asGroup(registration.AWSGroup("c1"))))
	} else if err := as.apply(sharedBinding(allAgents())); err != nil {
		w.Fatal(err)
	}
	if err := as.apply(worksBinding(allAgents())); err != nil {
		w.Fatal(err)
	}
	as.create(bindingIn("c1", clusterMap+"c1:registration", registration.AgentClusterRole, asGroup(registration.ClusterGroup("c1"))))
	as.create(bindingIn("c1", clusterMap+"c1:work", registration.WorkClusterRole, asGroup(registration.ClusterGroup("c1"))))
	as.create(leaseOf("c1", registration.LeaseName))
	as.create(bindingIn("c1", inspector, inspector, asUser(self)))
	harness.Eventually(w.T, "the rights of the agent", func(ctx context.Context) (bool, error) {
		_, err := harness.Kube(w.T, w.hub.UserConfig(w.users[hubAgent].name, w.users[hubAgent].groups...)).CoordinationV1().Leases("c1").
			Get(ctx, registration.LeaseName, metav1.GetOptions{})
		return err == nil, nil
	})
}

// TestWorth_OfHubControllerManager tries what RBAC alone would allow it to do.
func TestWorth_OfHubControllerManager(t *testing.T) {
	t.Parallel()
	w := newWorth(t, &perCluster)
	w.accept()
	admin, as := w.asAdmin(), w.as(managerSA)
	admin.create(sharedBinding(allAgents()))
	admin.create(namespaceOf("team", "", ""))
	admin.create(namespaceOf("adopted", registration.ClusterNameLabel+": adopted", ""))
	admin.create(roleOf(clusterMap+"c2", ""))
	admin.create(roleOf(clusterMap+"managed-clusters", ""))
	admin.create(clusterBinding("team", "view", asUser("eve")))
	admin.create(bindingIn("team", "team", "view", asUser("eve")))
	admin.create(leaseOf("kube-system", "kube-controller-manager"))
	admin.create(strings.Replace(managedCluster("held"), "name: held", "name: held, finalizers: [example.com/held]", 1))
	const (
		accessRequest = `{apiVersion: clusters.openmcp.cloud/v1alpha1, kind: AccessRequest, metadata: {namespace: default, name: a,
			finalizers: [example.com/held]}, spec: {clusterRef: {namespace: default, name: a}, token: {roleRefs: [{kind: ClusterRole, name: view}]}}}`
		clusterRequest = `{apiVersion: clusters.openmcp.cloud/v1alpha1, kind: ClusterRequest, metadata: {namespace: default, name: a}, spec: {purpose: a}}`
		goneOwner      = `{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}`
	)
	ofWeb := decisionOf("web-decision-1", ofPlacement("web")+`, mine: "yes"`, "Placement", "web")
	admin.create(ofWeb)
	admin.create(decisionOf("of-nobody", "", "Placement", "web"))
	admin.create("{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {namespace: team, name: web}}")
	admin.create(accessRequest)
	admin.create(clusterRequest)
	role := func(rule string) string { return roleOf(clusterMap+"c3", rule) }
	bind := func(name, role, subject string) error { return as.create(clusterBinding(name, role, subject)) }
	const onCluster = `apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters]`
	for what, err := range map[string]error{
		// Impersonation and escalation.
		"be an admin":                         bind(clusterMap+"c3", "cluster-admin", asUser(self)),
		"list everything":                     bind(inspector, inspector, asUser(self)),
		"list everything, as a cluster":       bind(clusterMap+"c3", inspector, asGroup(registration.ClusterGroup("c3"))),
		"let a friend list everything":        bind(clusterMap+"c3", inspector, asUser("eve")),
		"give a friend what it has":           bind(clusterMap+"c3", "clusterhub:hub-controller-manager", asUser("eve")),
		"bind the role for work everywhere":   bind(clusterMap+"c3", registration.WorkClusterRole, asGroup(registration.ClusterGroup("c3"))),
		"bind a cluster's role to a friend":   bind(clusterMap+"c2", clusterMap+"c2", asUser("eve")),
		"bind it to another cluster":          bind(clusterMap+"c2", clusterMap+"c2", asGroup(registration.ClusterGroup("c1"))),
		"bind it to all":                      bind(clusterMap+"c2", clusterMap+"c2", asGroup("system:authenticated")),
		"bind a role of another name":         bind("c2", clusterMap+"c2", asGroup(registration.ClusterGroup("c2"))),
		"be a cluster of all":                 bind(clusterMap+"managed-clusters", clusterMap+"managed-clusters", asGroup(registration.ManagedClustersGroup)),
		"change a binding to itself":          as.patch(clusterBinding(clusterMap+"c1", "", ""), `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"eve"}]}`),
		"change a binding of others":          as.patch(clusterBinding("clusterhub:members-viewer", "", ""), `{"metadata":{"labels":{"a":"b"}}}`),
		"delete a binding of others":          as.delete(clusterBinding("team", "", "")),
		"delete one of Kubernetes":            as.delete(clusterBinding("cluster-admin", "", "")),
		"bind the role of all to a friend":    as.apply(sharedBinding(asUser("eve"))),
		"… to a friend, too":                  as.apply(sharedBinding(allAgents() + "," + asUser("eve"))),
		"… to one cluster":                    as.apply(sharedBinding(asGroup(registration.ClusterGroup("c1")))),
		"… to whoever is logged in":           as.apply(sharedBinding(asGroup("system:authenticated"))),
		"bind another role by its name":       as.apply(clusterBinding(agentroles.ListCSRsClusterRole, "clusterhub:cluster-provider", allAgents())),
		"be an admin by its name":             as.apply(clusterBinding(agentroles.ListCSRsClusterRole, "cluster-admin", allAgents())),
		"bind the role for works to a friend": as.apply(worksBinding(asUser("eve"))),
		"… to whoever has no cluster":         as.apply(worksBinding(asGroup("system:authenticated"))),
		"… by another name":                   as.create(clusterBinding("team-3", agentroles.WorksClusterRole, allAgents())),
		"bind it by another name":             as.create(clusterBinding("team-2", agentroles.ClusterRole, allAgents())),
		"bind it in a namespace":              as.create(bindingIn("team", "team-2", agentroles.ClusterRole, asUser("eve"))),
		"change the role of all agents":       as.patch(roleOf(agentroles.ClusterRole, ""), `{"rules":null}`),
		"delete it":                           as.delete(roleOf(agentroles.ClusterRole, "")),
		"delete the shared role":              as.delete(roleOf(registration.AgentClusterRole, "")),
		"delete a role of Kubernetes":         as.delete(roleOf("cluster-admin", "")),
		"change the shared role":              as.patch(roleOf(registration.WorkClusterRole, ""), `{"metadata":{"labels":{"a":"b"}}}`),
		"change its own role":                 as.patch(roleOf("clusterhub:hub-controller-manager", ""), `{"metadata":{"labels":{"a":"b"}}}`),
		"a role of another name":              as.create(roleOf("c3", agentRules)),
		"a role for another cluster":          as.create(role(`{` + onCluster + `, resourceNames: [c1], verbs: [update]}`)),
		"a role for all clusters":             as.create(role(`{` + onCluster + `, verbs: [update]}`)),
		"a role to patch clusters":            as.create(role(`{` + onCluster + `, resourceNames: [c3], verbs: [patch]}`)),
		"a role to delete namespaces":         as.create(role(`{apiGroups: [""], resources: [namespaces], verbs: [delete]}`)),
		"a role to bind":                      as.create(role(`{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [create]}`)),
		"a role that gathers others":          as.patch(roleOf(clusterMap+"c1", ""), `{"aggregationRule":{"clusterRoleSelectors":[{}]}}`),
		"a role that others gather":           as.patch(roleOf(clusterMap+"c1", ""), `{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}}`),
		"a role without the cluster's label":  as.patch(roleOf(clusterMap+"c1", ""), `{"metadata":{"labels":null}}`),
		"a role with another's label":         as.patch(roleOf(clusterMap+"c1", ""), `{"metadata":{"labels":{"`+registration.ClusterNameLabel+`":"c2"}}}`),

		// Records of clusters.
		"remember what is no cluster":     as.create(recordOf("managed-clusters", "driver: csr")),
		"… by a name with dots":           as.create(recordOf("a.b", "driver: csr")),
		"remember without a label":        as.create(configMap(record.Namespace, "c3", "", "driver: csr")),
		"… with another's":                as.create(configMap(record.Namespace, "c3", registration.ClusterNameLabel+": c1", "driver: csr")),
		"… with one more":                 as.patch(recordOf("c1", ""), `{"metadata":{"labels":{"a":"b"}}}`),
		"remember other things":           as.create(recordOf("c3", "kubeconfig: a")),
		"remember them in bytes":          as.patch(recordOf("c1", ""), `{"binaryData":{"a":"YQ=="}}`),
		"have it collected as garbage":    as.patch(recordOf("c1", ""), `{"metadata":`+goneOwner+`}`),
		"have it stay as it is":           as.patch(recordOf("c1", ""), `{"immutable":true}`),
		"delete what is no record":        as.delete(configMap(record.Namespace, "kube-root-ca.crt", "", "")),
		"a ConfigMap somewhere else":      as.create(configMap("clusterhub-system", "c3", registration.ClusterNameLabel+": c3", "driver: csr")),
		"change the ConfigMaps of others": as.patch(configMap("team", "kube-root-ca.crt", "", ""), `{"data":{"driver":"csr"}}`),

		// Objects in namespaces.
		"read the Secrets of kube-system":    as.create(bindingIn("kube-system", inspector, inspector, asUser(self))),
		"read those of a team":               as.create(bindingIn("team", inspector, inspector, asUser(self))),
		"read those of an adopted namespace": as.create(bindingIn("adopted", inspector, inspector, asUser(self))),
		"let a friend read a cluster's":      as.patch(bindingIn("c1", inspector, "", ""), `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"eve"}]}`),
		"read by another name":               as.create(bindingIn("c1", clusterMap+"c1:x", inspector, asUser(self))),
		"agents in a team's namespace":       as.create(bindingIn("team", clusterMap+"team:work", registration.WorkClusterRole, asGroup(registration.ClusterGroup("team")))),
		"agents of another cluster":          as.patch(bindingIn("c1", clusterMap+"c1:work", "", ""), `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:open-cluster-management:c2"}]}`),
		"delete a team's binding":            as.delete(bindingIn("team", "team", "", "")),
		"delete a team's namespace":          as.delete(namespaceOf("team", "", "")),
		"delete an adopted namespace":        as.delete(namespaceOf("adopted", "", "")),
		"delete the hub's namespace":         as.delete(namespaceOf("clusterhub-system", "", "")),
		"make a namespace that looks made":   as.create(namespaceOf("new", registration.ClusterNameLabel+": c1", registration.AnnotationMade+": c1")),
		"make any namespace":                 as.create(namespaceOf("new", "", "")),
		"a Lease of Kubernetes":              as.create(leaseOf("kube-system", "new")),
		"a cluster's Lease elsewhere":        as.create(leaseOf("team", registration.LeaseName)),
		"delete a Lease of Kubernetes":       as.delete(leaseOf("kube-system", "kube-controller-manager")),

		// The hub's own API.
		"be kube-controller-manager":          as.create(w.request("new", "", pkix.Name{CommonName: "system:kube-controller-manager"})),
		"accept a cluster":                    as.patch(managedCluster("c2"), `{"spec":{"hubAcceptsClient":true}}`),
		"delete a cluster":                    as.delete(managedCluster("c2")),
		"have a cluster collected as garbage": as.patch(managedCluster("c2"), `{"metadata":`+goneOwner+`}`),
		"let a cluster go that others hold":   as.patch(managedCluster("held"), `{"metadata":{"finalizers":[]}}`),
		"ask for more":                        as.patch(accessRequest, `{"spec":{"token":{"roleRefs":[{"kind":"ClusterRole","name":"cluster-admin"}]}}}`),
		"have access collected as garbage":    as.patch(accessRequest, `{"metadata":`+goneOwner+`}`),
		"keep access from being taken back":   as.patch(accessRequest, `{"metadata":{"annotations":{"openmcp.cloud/operation":"ignore"}}}`),
		"let access stay":                     as.patch(accessRequest, `{"metadata":{"finalizers":[]}}`),
		"have a request collected as garbage": as.patch(clusterRequest, `{"metadata":`+goneOwner+`}`),
		"move a cluster to another set":       as.patch(managedCluster("c2"), `{"metadata":{"labels":{"`+harness.SetLabel+`":"prod"}}}`),
		"label a cluster":                     as.patch(managedCluster("c2"), `{"metadata":{"labels":{"a":"b"}}}`),
		"lead clients of a cluster away": as.patch(managedCluster("c2"),
			`{"spec":{"managedClusterClientConfigs":[{"url":"https://eve.example.com"}]}}`),
		"say how a cluster registers": as.patch(managedCluster("c2"), `{"metadata":{"annotations":{"`+registration.AnnotationAgentKey+`":"00"}}}`),
		"namespaces on all clusters": as.create(`{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet,
			metadata: {name: global}, spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}, managedNamespaces: [{name: eve}]}}`),
		"a decision of no placement":             as.create(decisionOf("web-decision-2", "", "Placement", "web")),
		"… that nobody owns":                     as.create(strings.Replace(decisionOf("web-decision-2", ofPlacement("web"), "Placement", "web"), "ownerReferences", "x", 1)),
		"… that another owns":                    as.create(decisionOf("web-decision-2", ofPlacement("web"), "Placement", "api")),
		"… that is collected as garbage":         as.create(decisionOf("web-decision-2", ofPlacement("web"), "ManagedClusterSet", "web")),
		"… that delays its placement's end":      as.create(strings.Replace(decisionOf("web-decision-2", ofPlacement("web"), "Placement", "web"), "controller: true", "controller: true, blockOwnerDeletion: true", 1)),
		"… by the name of another":               as.create(decisionOf("api-decision-1", ofPlacement("web"), "Placement", "web")),
		"… with a label of its own":              as.create(decisionOf("web-decision-2", ofPlacement("web")+", a: b", "Placement", "web")),
		"have a decision collected as garbage":   as.patch(ofWeb, `{"metadata":`+goneOwner+`}`),
		"hide a decision":                        as.patch(ofWeb, `{"metadata":{"labels":{"`+v1beta1.PlacementLabel+`":null}}}`),
		"give a decision to another placement":   as.patch(ofWeb, `{"metadata":{"labels":{"`+v1beta1.PlacementLabel+`":"api"}}}`),
		"take away what others label a decision": as.patch(ofWeb, `{"metadata":{"labels":{"mine":null}}}`),
		"keep a decision from being deleted":     as.patch(ofWeb, `{"metadata":{"finalizers":["example.com/eve"]}}`),
		"annotate a decision":                    as.patch(ofWeb, `{"metadata":{"annotations":{"a":"b"}}}`),
		"delete what is a decision of nobody":    as.delete(decisionOf("of-nobody", "", "Placement", "web")),
		"change what is wanted":                  as.patch(strings.Replace(decisionOf("web", "", "Placement", "web"), "kind: PlacementDecision", "kind: Placement", 1), `{"spec":{"numberOfClusters":1}}`),
		"a set of its own":                       as.create(`{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, metadata: {name: eve}}`),
	} {
		w.want(managerSA, what, false, err)
	}
	for what, err := range map[string]error{
		"shut an agent out":              as.patch(roleOf(clusterMap+"c1", ""), `{"rules":null}`),
		"let agents see requests":        as.patch(roleOf(clusterMap+"c1", ""), `{"rules":[{"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests"],"verbs":["create","get","list","watch"]}]}`),
		"remember what it granted":       as.patch(recordOf("c1", ""), `{"data":{"granted":"now"}}`),
		"forget a cluster":               as.delete(recordOf("c1", "")),
		"forget what an older hub wrote": as.patch(roleOf(clusterMap+"c1", ""), `{"metadata":{"annotations":{"registration.clusterhub.dev/driver":null}}}`),
		"let all agents in":              as.apply(sharedBinding(allAgents())),
		"shut all agents out":            as.delete(sharedBinding(allAgents())),
		"let all agents have works":      as.apply(worksBinding(allAgents())),
		"… and no longer":                as.delete(worksBinding(allAgents())),
		"delete a cluster's role":        as.delete(roleOf(clusterMap+"c1", "")),
		"its binding":                    as.delete(clusterBinding(clusterMap+"c1", "", "")),
		"the agents' bindings":           as.delete(bindingIn("c1", clusterMap+"c1:work", "", "")),
		"give its sight back":            as.delete(bindingIn("c1", inspector, "", "")),
		"the Lease":                      as.delete(leaseOf("c1", registration.LeaseName)),
		"a namespace that it made":       as.delete(namespaceOf("c1", "", "")),
		"agents in an adopted one":       as.create(bindingIn("adopted", clusterMap+"adopted:work", registration.WorkClusterRole, asGroup(registration.ClusterGroup("adopted")))),
		"taint a cluster":                as.patch(managedCluster("c2"), `{"spec":{"taints":[{"key":"a","effect":"NoSelect"}]}}`),
		"hold a cluster":                 as.patch(managedCluster("c2"), `{"metadata":{"finalizers":["`+registration.Finalizer+`"]}}`),
		"make a decision":                as.create(decisionOf("web-decision-2", ofPlacement("web"), "Placement", "web")),
		"move it to another group":       as.patch(ofWeb, `{"metadata":{"labels":{"`+v1beta1.DecisionGroupIndexLabel+`":"1"}}}`),
		"delete a decision":              as.delete(ofWeb),
		// Rights that exceed its task.
		"send things to any cluster":               as.patchStatus(ofWeb, `{"status":{"decisions":[{"clusterName":"c1","reason":""}]}}`),
		"read Secrets in a namespace that it made": as.list("Secret", "c1"),
		"bring every cluster to look gone":         as.patchStatus(managedCluster("c2"), `{"status":{"conditions":[]}}`),
	} {
		w.want(managerSA, what, true, err)
	}
	w.tryWorks(as)
	w.want(managerSA, "read Secrets elsewhere", false, as.list("Secret", "kube-system"))
}

// request returns a certificate request with a subject.
func (w *worth) request(name, cluster string, subject pkix.Name) string {
	w.Helper()
	key := harness.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(w.T)
	der := harness.Must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key))(w.T)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return fmt.Sprintf(`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: %s, labels: {%s: %q}},
		spec: {signerName: %s, usages: [client auth], request: %s}}`,
		name, registration.ClusterNameLabel, cluster, registration.SignerName, base64.StdEncoding.EncodeToString(block))
}

// TestWorth_OfHubCertificateApprover approves requests that it should not, and uses rights that it has for other purposes.
func TestWorth_OfHubCertificateApprover(t *testing.T) {
	t.Parallel()
	w := newWorth(t, &perCluster)
	w.accept()
	as := w.as(approverSA)
	subject := pkix.Name{CommonName: "system:kube-controller-manager"}
	decide := func(name, cluster, requester string, decision certificatesv1.RequestConditionType) error {
		// The front's headers name the requester, and members of system:masters may have any name.
		config := w.hub.UserConfig(requester, "system:masters")
		by := actor{worth: w, Client: harness.Must(client.New(config, client.Options{}))(t)}
		surely{by}.create(w.request(name, cluster, subject))
		requests := harness.Kube(t, w.hub.UserConfig(w.users[approverSA].name, w.users[approverSA].groups...)).CertificatesV1().CertificateSigningRequests()
		request := harness.Must(w.admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{}))(t)
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: decision, Status: corev1.ConditionTrue, Reason: "Test"})
		return harness.ErrorOf(requests.UpdateApproval(t.Context(), name, request, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	// deletes tries to delete a certificate request of a user.
	deletes := func(name, cluster, requester string, conditions ...certificatesv1.CertificateSigningRequestCondition) error {
		_ = decide(name, cluster, requester, certificatesv1.CertificateApproved)
		requests := w.admin.CertificatesV1().CertificateSigningRequests()
		request := harness.Must(requests.Get(t.Context(), name, metav1.GetOptions{}))(t)
		request.Status.Conditions = conditions
		if len(conditions) > 0 {
			harness.Must(requests.UpdateApproval(t.Context(), name, request, metav1.UpdateOptions{}))(t)
		}
		return as.Delete(t.Context(), request)
	}
	// deletesOther tries to delete a user's certificate request for a signer other than the registration's.
	deletesOther := func(name, requester string) error {
		by := actor{worth: w, Client: harness.Must(client.New(w.hub.UserConfig(requester, "system:masters"), client.Options{}))(t)}
		manifest := strings.ReplaceAll(w.request(name, "c1", subject), registration.SignerName, "example.com/signer")
		surely{by}.create(manifest)
		return as.delete(manifest)
	}
	pinned := strings.Repeat("a", 64)
	const approved, denied = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied
	agent := w.users[hubAgent].name
	for what, err := range map[string]error{
		"be kube-controller-manager":                as.create(w.request("new", "c1", subject)),
		"approve for hub-apiserver":                 decide("apiserver", "c1", w.users[apiserverSA].name, approved),
		"approve for kube-system":                   decide("kube-system", "c1", "system:serviceaccount:kube-system:a", approved),
		"approve for a node":                        decide("node", "c1", "system:node:a", approved),
		"approve for another cluster":               decide("other", "c2", agent, approved),
		"approve what no cluster asks":              decide("none", "", agent, approved),
		"deny what others ask":                      decide("denied", "c1", agent, denied),
		"delete what kube-system asks":              deletes("del-system", "c1", "system:serviceaccount:kube-system:a"),
		"delete what a node asks":                   deletes("del-node", "c1", "system:node:a"),
		"delete what no cluster asks":               deletes("del-none", "", agent),
		"delete what a user asks of another signer": deletesOther("del-other-user", "joiner"),
		"delete what was approved": deletes("del-approved", "c1", agent,
			certificatesv1.CertificateSigningRequestCondition{Type: approved, Status: corev1.ConditionTrue, Reason: "Test"}),
		"give an agent rights":     as.patch(roleOf(clusterMap+"c1", ""), `{"rules":[{"apiGroups":["certificates.k8s.io"],"resources":["certificatesigningrequests"],"verbs":["create"]}]}`),
		"label a role":             as.patch(roleOf(clusterMap+"c1", ""), `{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}}`),
		"annotate one":             as.patch(roleOf(clusterMap+"c1", ""), `{"metadata":{"annotations":{"registration.clusterhub.dev/key-sha256":"`+pinned+`"}}}`),
		"change a shared role":     as.patch(roleOf(registration.AgentClusterRole, ""), `{"metadata":{"annotations":{"registration.clusterhub.dev/a":"b"}}}`),
		"say what a cluster is":    as.patch(recordOf("c1", ""), `{"data":{"granted":"now"}}`),
		"say who may ask":          as.patch(recordOf("c1", ""), `{"data":{"requesters":"eve"}}`),
		"say another thing":        as.patch(recordOf("c1", ""), `{"data":{"a":"b"}}`),
		"forget what a cluster is": as.patch(recordOf("c1", ""), `{"data":{"driver":null}}`),
		"pin what is no key":       as.patch(recordOf("c1", ""), `{"data":{"key-sha256":"00"}}`),
		"annotate a record":        as.patch(recordOf("c1", ""), `{"metadata":{"annotations":{"a":"b"}}}`),
		"label it":                 as.patch(recordOf("c1", ""), `{"metadata":{"labels":{"a":"b"}}}`),
		"hold it":                  as.patch(recordOf("c1", ""), `{"metadata":{"finalizers":["example.com/held"]}}`),
		"make it stay":             as.patch(recordOf("c1", ""), `{"immutable":true}`),
		"make a record":            as.create(recordOf("c2", "driver: csr")),
		"delete one":               as.delete(recordOf("c1", "")),
		"change what is no record": as.patch(configMap(record.Namespace, "kube-root-ca.crt", "", ""), `{"data":{"key-sha256":"`+pinned+`"}}`),
		"change other ConfigMaps":  as.patch(configMap("kube-system", "extension-apiserver-authentication", "", ""), `{"data":{"key-sha256":"`+pinned+`"}}`),
		"say what a cluster runs":  as.patchStatus(managedCluster("c1"), `{"status":{"version":{"kubernetes":"v1.0.0"}}}`),
		"label a cluster":          as.update(managedCluster("c1"), "b", "metadata", "labels", "a"),
		"say how a cluster is":     as.patchStatus(managedCluster("c1"), `{"status":{"conditions":[{"type":"HubAcceptedManagedCluster","status":"True","reason":"a","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
		"shut a cluster out":       as.update(managedCluster("c1"), false, "spec", "hubAcceptsClient"),
		"accept a cluster":         as.update(managedCluster("c2"), true, "spec", "hubAcceptsClient"),
	} {
		w.want(approverSA, what, false, err)
	}
	for what, err := range map[string]error{
		"remember a key":                as.patch(recordOf("c1", ""), `{"data":{"key-sha256":"`+pinned+`","key-since":"2030-01-01T00:00:00Z"}}`),
		"remember that it is undecided": as.patch(recordOf("c1", ""), `{"data":{"key-sha256":"undecided","key-since":"2030-01-01T00:00:00Z"}}`),
		"say that a request waits": as.patchStatus(managedCluster("c1"), `{"status":{"conditions":[{"type":"ClientCertificateRequestWaits","status":"True",
			"reason":"a","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
		// This exceeds its task: a policy cannot see the subject of a request.
		"delete what an agent asks":      deletes("del-agent", "c1", agent),
		"… of another signer, too":       deletesOther("del-other-agent", agent),
		"… or a bootstrap token, too":    deletes("del-token", "c1", "system:bootstrap:abcdef"),
		"approve whatever an agent asks": decide("renewal", "c1", agent, approved),
		"… or a bootstrap token":         decide("first", "c1", "system:bootstrap:abcdef", approved),
		"… or one of its flags":          decide("named", "c1", "joiner", approved),
	} {
		w.want(approverSA, what, true, err)
	}
}

// TestWorth_OfHubAPIServer requests the tokens of others, and tries to redirect its clients.
func TestWorth_OfHubAPIServer(t *testing.T) {
	t.Parallel()
	w := newWorth(t, &ofAllAgents)
	as := w.as(apiserverSA)
	const ca = "hub-apiserver-serving-ca"
	for what, err := range map[string]error{
		"a token of another":                as.create(secretOf("clusterhub-system", "new", "kubernetes.io/service-account-token", managerSA)),
		"another Secret":                    as.create(secretOf("clusterhub-system", "new", "kubernetes.io/tls", "")),
		"lead requests away":                as.patch(apiService, `{"spec":{"service":{"name":"eve"}}}`),
		"have its API collected as garbage": as.patch(apiService, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`),
		"have its certificate unproven":     as.patch(apiService, `{"spec":{"insecureSkipTLSVerify":true,"caBundle":null}}`),
	} {
		w.want(apiserverSA, what, false, err)
	}
	w.want(apiserverSA, "its own CA", true, as.update(secretOf("clusterhub-system", ca, "kubernetes.io/tls", ""), "a", "metadata", "annotations", "a"))
	// The Secret is deleted, or never existed because the certificate is the admin's.
	secrets := w.admin.CoreV1().Secrets("clusterhub-system")
	secret := harness.Must(secrets.Get(t.Context(), ca, metav1.GetOptions{}))(t)
	if err := secrets.Delete(t.Context(), ca, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		secret.ResourceVersion, secret.UID = "", ""
		// hub-apiserver may have recreated it.
		if _, err := secrets.Create(context.WithoutCancel(t.Context()), secret, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
		}
	})
	w.want(apiserverSA, "a token of another by the name of its own Secret", false,
		as.create(secretOf("clusterhub-system", ca, "kubernetes.io/service-account-token", managerSA)))
}
