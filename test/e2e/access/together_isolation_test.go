// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/namehash"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// isolation has two teams and three providers: each local provider has its own cluster, and the third one provides the cluster of the first to team-a
// as well.
type isolation struct {
	*accessHub
	ann                 string // kubeconfig of team-a
	here, there         string // directories
	blue, green, mirror *v1alpha1.Cluster
	admin               *v1alpha1.AccessRequest // to blue
	target              kubernetes.Interface    // as admin
}

func newIsolation(t *testing.T, h *accessHub, ann, here string) *isolation {
	t.Helper()
	h.namespace(t, "team-b")
	i := &isolation{accessHub: h, ann: ann, here: here, there: h.localProvider(t, "there")}
	i.blue, i.green = i.newCluster(t, "team-b", "blue", "test.here.default"), i.newCluster(t, "ops", "green", "test.there.default")
	i.awaitReady(t, i.blue)
	i.awaitReady(t, i.green)
	i.admin = i.create(t, "ops", "admin", i.blue, withRole("cluster-admin"))
	kubeconfigOfBlue := i.granted(t, i.admin)
	i.target = clientOf(t, kubeconfigOfBlue)
	i.admit(t, "team-a", "existing", []string{"forged"}, kubeconfigOfBlue) // only the provider's own namespace counts
	i.admit(t, harness.ProvidersNamespace, "existing", []string{"mirror"}, kubeconfigOfBlue)
	i.provider(t, "kubeconfig", "existing")
	i.mirror = i.newCluster(t, "team-a", "mirror", "test.existing.mirror")
	i.awaitReady(t, i.mirror)
	return i
}

func (i *isolation) run(t *testing.T) {
	t.Run("providers", i.providersKeepToThemselves)
	t.Run("namespaces", i.nothingIsLearntOfAnotherNamespace)
	t.Run("references", i.referencesAreLimitedByThePolicy)
	t.Run("names", i.namesDoNotCollide)
	t.Run("roles", i.rolesOfOthersAreNotTakenOver)
	t.Run("labels", i.labelsDecideNothing)
	t.Run("relabelled", i.relabelledRequestsLoseTheirAccess)

	profiles := &v1alpha1.ClusterProfileList{}
	if err := i.client.List(t.Context(), profiles); err != nil || len(profiles.Items) != 3 {
		t.Errorf("%d profiles, %v", len(profiles.Items), err)
	}
	i.nothingLeft(t, i.target, i.admin)
}

// end deletes requests, and waits until they are gone.
func (i *isolation) end(t *testing.T, requests ...*v1alpha1.AccessRequest) {
	t.Helper()
	for _, ar := range requests {
		if err := i.client.Delete(t.Context(), ar); err != nil {
			t.Error(err)
		}
	}
	for _, ar := range requests {
		i.awaitGone(t, ar.DeepCopy())
	}
}

func permissions(requests ...v1alpha1.PermissionsRequest) func(*v1alpha1.AccessRequest) {
	return func(ar *v1alpha1.AccessRequest) { ar.Spec.Token.Permissions = requests }
}

func (i *isolation) providersKeepToThemselves(t *testing.T) {
	one := map[string]*v1alpha1.AccessRequest{
		"here":     i.create(t, "team-b", "one", i.blue, permissions(readNodes...)),
		"there":    i.create(t, "ops", "one", i.green, permissions(readNodes...)),
		"existing": i.create(t, "team-a", "one", i.mirror, permissions(readNodes...)),
	}
	users := map[string]kubernetes.Interface{}
	for provider, ar := range one {
		users[provider] = clientOf(t, i.granted(t, ar))
		harness.Must(users[provider].CoreV1().Nodes().List(t.Context(), listOptions()))(t)
		if len(ar.Finalizers) != 1 || ar.Finalizers[0] != "test."+provider+".clusters.openmcp.cloud/accessrequest" {
			t.Errorf("the request to %s has the finalizers %v", provider, ar.Finalizers)
		}
	}
	for provider, c := range map[string]*v1alpha1.Cluster{"here": i.blue, "there": i.green, "existing": i.mirror} {
		object(t, i.accessHub, c.Namespace, c.Name, c)
		own := "test." + provider + ".clusters.openmcp.cloud/cluster"
		if c.Labels[v1alpha1.ProviderLabel] != provider || len(c.Finalizers) != 2 || !slices.Contains(c.Finalizers, own) {
			t.Errorf("%s has the finalizers %v and the labels %v", c.Name, c.Finalizers, c.Labels)
		}
	}
	for dir, c := range map[string]*v1alpha1.Cluster{i.here: i.blue, i.there: i.green} {
		if folders := harness.Must(os.ReadDir(filepath.Join(dir, "clusters")))(t); len(folders) != 1 || folders[0].Name() != string(c.UID) {
			t.Errorf("for %s there are the folders %v", c.Name, folders)
		}
	}
	before := madeFor(t, i.target, "here", "one")
	i.end(t, one["existing"], one["there"])
	if after := madeFor(t, i.target, "here", "one"); len(before) != 3 || !slices.Equal(before, after) {
		t.Errorf("what here has made was %v and is %v", before, after)
	}
	if left := madeFor(t, i.target, "existing", "one"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	harness.Must(users["here"].CoreV1().Nodes().List(t.Context(), listOptions()))(t)
	i.end(t, one["here"])
}

// nothingIsLearntOfAnotherNamespace verifies that a user of one namespace gets the same responses for existing and missing objects of a different
// one.
func (i *isolation) nothingIsLearntOfAnotherNamespace(t *testing.T) {
	there := i.create(t, "team-b", "secretive", i.blue, withRole("view"))
	i.granted(t, there)
	ctx, config := t.Context(), harness.Must(harness.ClientConfig(i.ann))(t)
	ours, core := harness.Ours(t, config).OpenMCPV1alpha1(), harness.Kube(t, config).CoreV1()
	requests, dryRun := ours.AccessRequests("team-b"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	request := func(name string) *v1alpha1.AccessRequest {
		return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: name}, Spec: there.Spec}
	}
	list := func(name string) metav1.ListOptions {
		return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	}
	for what, attack := range map[string]func(name string) error{
		"get":      func(name string) error { return harness.ErrorOf(requests.Get(ctx, name, metav1.GetOptions{})) },
		"list":     func(name string) error { return harness.ErrorOf(requests.List(ctx, list(name))) },
		"list all": func(name string) error { return harness.ErrorOf(ours.AccessRequests("").List(ctx, list(name))) },
		"watch":    func(name string) error { return harness.ErrorOf(requests.Watch(ctx, list(name))) },
		"create":   func(name string) error { return harness.ErrorOf(requests.Create(ctx, request(name), dryRun)) },
		"update": func(name string) error {
			return harness.ErrorOf(requests.Update(ctx, request(name), metav1.UpdateOptions{}))
		},
		"delete": func(name string) error { return requests.Delete(ctx, name, metav1.DeleteOptions{}) },
		"token": func(name string) error {
			return harness.ErrorOf(requests.CreateToken(ctx, name, &v1alpha1.AccessToken{}, metav1.CreateOptions{}))
		},
		"try a token": func(name string) error {
			return harness.ErrorOf(requests.CreateToken(ctx, name, &v1alpha1.AccessToken{}, dryRun))
		},
		"own status": func(name string) error {
			return harness.ErrorOf(ours.AccessRequests("team-a").UpdateStatus(ctx, request(name), metav1.UpdateOptions{}))
		},
		"cluster": func(string) error {
			return harness.ErrorOf(ours.Clusters("team-b").Get(ctx, "blue", metav1.GetOptions{}))
		},
		"clusterrequest": func(name string) error {
			return harness.ErrorOf(ours.ClusterRequests("team-b").Get(ctx, name, metav1.GetOptions{}))
		},
		"secret": func(name string) error {
			return harness.ErrorOf(core.Secrets("team-b").Get(ctx, name+".kubeconfig", metav1.GetOptions{}))
		},
		"token sources": func(string) error {
			return harness.ErrorOf(core.Secrets(v1alpha1.TokenSourceNamespace).List(ctx, listOptions()))
		},
		"token source": func(string) error {
			return harness.ErrorOf(core.Secrets(v1alpha1.TokenSourceNamespace).Get(ctx, string(there.UID), metav1.GetOptions{}))
		},
		"events": func(string) error { return harness.ErrorOf(core.Events("team-b").List(ctx, listOptions())) },
	} {
		var told []string
		for _, name := range []string{"secretive", "nobody"} {
			err := attack(name)
			harness.WantForbidden(t, err)
			told = append(told, strings.ReplaceAll(fmt.Sprint(err), name, "NAME"))
		}
		if told[0] != told[1] {
			t.Errorf("%s: what is there is told from what is not:\n%s\n%s", what, told[0], told[1])
		}
	}
	// kubectl hub requests the same object in both cases, and has no access to others.
	p := harness.Plugin{Kubeconfig: i.ann}
	for _, args := range []string{
		"blue -n team-b --cluster-role=view", "nobody -n team-b --cluster-role=view", "blue -n team-b --revoke",
		"team-b/blue -n team-a --cluster-role=view --timeout=60s",
	} {
		stdout, stderr, err := p.Run(t, append([]string{"access"}, strings.Fields(args)...)...)
		if err == nil || strings.Contains(stdout+stderr, "secretive") {
			t.Errorf("%s: %v\n%s%s", args, err, stdout, stderr)
		}
	}
	p.Must(t, "access", "team-b/blue", "-n", "team-a", "--revoke")
	// Access of others to a cluster of the team reveals nothing about them.
	foreign := i.create(t, "ops", "foreign", i.mirror)
	i.granted(t, foreign)
	out := i.must(t, i.ann, "", "get", "clusters,accessrequests,clusterrequests,events", "-n", "team-a", "-o", "yaml")
	if strings.Contains(out, "foreign") || strings.Contains(out, "secretive") {
		t.Errorf("others are told of in team-a:\n%s", out)
	}
	i.end(t, there, foreign)
}

func (i *isolation) referencesAreLimitedByThePolicy(t *testing.T) {
	byCluster := i.create(t, "team-a", "by-cluster", i.blue, withRole("view"))
	request := &v1alpha1.ClusterRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "theirs"}, Spec: v1alpha1.ClusterRequestSpec{Purpose: "unknown"},
	}
	if err := i.client.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	// It patches, because the scheduler writes there, too.
	before := request.DeepCopy()
	request.Status.Phase, request.Status.Cluster = v1alpha1.REQUEST_GRANTED, byCluster.Spec.ClusterRef
	if err := i.client.Status().Patch(t.Context(), request, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	byRequest := i.create(t, "team-a", "by-request", i.blue, withRole("view"), func(ar *v1alpha1.AccessRequest) {
		ar.Spec.ClusterRef, ar.Spec.RequestRef = nil, &v1alpha1.ObjectReference{Namespace: "team-b", Name: "theirs"}
	})
	for _, ar := range []*v1alpha1.AccessRequest{byCluster, byRequest} {
		message := i.refusal(t, ar, "DeniedByPolicy")
		if ar == byRequest && strings.Contains(message, "blue") {
			t.Errorf("which cluster a request elsewhere has is told: %s", message)
		}
		if !ar.Status.IsDenied() || len(ar.Finalizers)+len(ar.Labels) > 0 || len(madeFor(t, i.target, "here", ar.Name)) > 0 {
			t.Errorf("%+v", ar)
		}
	}
	if byRequest.Spec.ClusterRef != nil {
		t.Errorf("which cluster a request elsewhere has is told: %v", byRequest.Spec.ClusterRef)
	}
	// A denied request cannot become a request for a different cluster, and a granted one cannot become a request for a cluster of others.
	own := i.create(t, "team-a", "own", i.mirror, withRole("view"))
	i.granted(t, own)
	change := func(name, reference string) string {
		patch := `{"spec":{"clusterRef":` + reference + `}}`
		return i.refused(t, i.ann, "", "patch", "accessrequest", name, "-n", "team-a", "--type=merge", "-p", patch)
	}
	harness.Contains(t, change("by-cluster", `{"namespace":"team-a","name":"mirror"}`), "clusterRef is immutable")
	harness.Contains(t, change("own", `{"namespace":"team-b","name":"blue"}`), "clusterRef is immutable")
	harness.Contains(t, change("own", `null`), "clusterRef may not be removed once set")
	i.end(t, byCluster, byRequest, own)
	if err := i.client.Delete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

func (i *isolation) namesDoNotCollide(t *testing.T) {
	long := strings.Repeat("long-", 15) + "x"
	shortened := func(length int) string { return long[:length-10] + "--" + namehash.NameHash(long) }
	taken := permissions(v1alpha1.PermissionsRequest{Name: "taken", Rules: readNodes[0].Rules})
	requests := []*v1alpha1.AccessRequest{
		i.create(t, "team-a", long, i.mirror, permissions(readNodes...)), i.create(t, "team-b", "one", i.blue, taken),
	}
	var users []kubernetes.Interface
	for _, ar := range requests {
		users = append(users, clientOf(t, i.granted(t, ar)))
	}
	// The label and the Secret of the long name have these names.
	asLabel := i.create(t, "team-a", shortened(63), i.mirror, permissions(readNodes...))
	users = append(users, clientOf(t, i.granted(t, asLabel)))
	asSecret := i.create(t, "team-a", shortened(52), i.mirror, permissions(readNodes...))
	harness.Contains(t, i.refusal(t, asSecret, "ResourceNotManaged"), asSecret.Name+".kubeconfig")
	// A different request has a role of this name.
	asRole := i.create(t, "team-a", "one", i.mirror, taken)
	harness.Contains(t, i.refusal(t, asRole, "ResourceNotManaged"), "ClusterRole taken: it exists")
	i.end(t, asSecret, asRole)
	for _, user := range users {
		harness.Must(user.CoreV1().Nodes().List(t.Context(), listOptions()))(t)
	}
	i.end(t, asLabel)
	for _, user := range users[:2] {
		harness.Must(user.CoreV1().Nodes().List(t.Context(), listOptions()))(t)
	}
	i.end(t, requests...)
}

// rolesOfOthersAreNotTakenOver verifies this, as a role that a request defines under the name of an existing one would be bound to more than the
// policy has checked.
func (i *isolation) rolesOfOthersAreNotTakenOver(t *testing.T) {
	ctx := t.Context()
	harness.Must(i.target.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "powerful"}, Rules: []rbacv1.PolicyRule{harness.RuleIn("", "list", "secrets")},
	}, metav1.CreateOptions{}))(t)
	ar := i.create(t, "team-a", "climbing", i.mirror, permissions(readNodes...))
	user := clientOf(t, i.granted(t, ar))
	i.must(t, i.ann, "", "patch", "accessrequest", "climbing", "-n", "team-a", "--type=merge", "-p",
		`{"spec":{"token":{"permissions":[{"name":"powerful","rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["list"]}]}]}}}`)
	i.awaitRequest(t, "has changed", ar, func(ar *v1alpha1.AccessRequest) bool {
		return ar.Generation > 2 || ar.Status.ObservedGeneration == ar.Generation
	})
	harness.Contains(t, i.refusal(t, ar, "ResourceNotManaged"), "ClusterRole powerful")
	if _, err := user.CoreV1().Secrets("").List(ctx, listOptions()); err == nil {
		t.Errorf("a request for nodes has got the secrets: %v", madeFor(t, i.target, "existing", "climbing"))
	}
	i.end(t, ar)
	if err := i.target.RbacV1().ClusterRoles().Delete(ctx, "powerful", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (i *isolation) labelsDecideNothing(t *testing.T) {
	forged := func(provider, profile string) func(*v1alpha1.AccessRequest) {
		return func(ar *v1alpha1.AccessRequest) {
			ar.Labels = map[string]string{v1alpha1.ProviderLabel: provider, v1alpha1.ProfileLabel: profile}
		}
	}
	past := i.create(t, "team-a", "past-the-policy", i.blue, withRole("cluster-admin"), forged("here", "test.here.default"))
	i.refusal(t, past, "DeniedByPolicy")
	wrong := i.create(t, "team-a", "wrong-provider", i.mirror, withRole("view"), forged("there", "test.there.default"))
	harness.Contains(t, i.refusal(t, wrong, "InvalidReference"), `does not belong to the provider "there"`)
	nobody := i.create(t, "team-a", "no-provider", i.mirror, withRole("view"), forged("nobody", "none"))
	partly := i.create(t, "team-a", "partly", i.mirror, withRole("view"), func(ar *v1alpha1.AccessRequest) {
		ar.Labels = map[string]string{v1alpha1.ProviderLabel: "there"}
	})
	harness.Contains(t, i.refusal(t, partly, "ConfigurationProblem"), "remove the label")
	for _, ar := range []*v1alpha1.AccessRequest{past, wrong, nobody, partly} {
		object(t, i.accessHub, ar.Namespace, ar.Name, ar)
		if ar.Status.IsGranted() || ar.Status.SecretRef != nil {
			t.Errorf("%s is granted: %+v", ar.Name, ar.Status)
		}
	}
	// The Secret claims to belong to a provider, for a request of others.
	theirs := i.create(t, "team-b", "theirs", i.blue, withRole("view"))
	i.granted(t, theirs)
	version := object(t, i.accessHub, "team-b", "theirs.kubeconfig", &corev1.Secret{}).ResourceVersion
	forgedSecret := fmt.Sprintf(`
apiVersion: v1
kind: Secret
type: %s
metadata:
  namespace: team-a
  name: theirs.kubeconfig
  labels: {openmcp.cloud/managed-by: here, openmcp.cloud/environment: test}
  ownerReferences:
  - {apiVersion: clusters.openmcp.cloud/v1alpha1, kind: AccessRequest, name: theirs, uid: %s, controller: true}
stringData: {accessRequest: team-b/theirs, kubeconfig: mine, serviceAccountNamespace: kube-system, serviceAccountName: default}
`, v1alpha1.TokenSourceSecretType, theirs.UID)
	i.must(t, i.ann, forgedSecret, "create", "-f", "-")
	// Its owner is in a different namespace, so the garbage collector may delete it first.
	i.must(t, i.ann, "", "delete", "secret", "theirs.kubeconfig", "-n", "team-a", "--ignore-not-found")
	i.end(t, past, wrong, nobody, partly)
	if now := object(t, i.accessHub, "team-b", "theirs.kubeconfig", &corev1.Secret{}).ResourceVersion; now != version {
		t.Error("a Secret in team-a has made a provider write one in team-b")
	}
	i.end(t, theirs)
}

// relabelledRequestsLoseTheirAccess verifies that the provider revokes the access of a request even after a user who may change the request changes
// its labels.
func (i *isolation) relabelledRequestsLoseTheirAccess(t *testing.T) {
	ar := i.create(t, "team-a", "relabelled", i.mirror, withRole("view"))
	kubeconfig := i.granted(t, ar)
	i.must(t, i.ann, "", "label", "accessrequest/relabelled", "-n", "team-a", "--overwrite", v1alpha1.ProviderLabel+"=nobody")
	i.must(t, i.ann, "", "delete", "accessrequest", "relabelled", "-n", "team-a", "--wait=false")
	i.awaitGone(t, ar)
	user := clientOf(t, kubeconfig)
	harness.Eventually(t, "its kubeconfig is of no use", func(ctx context.Context) (bool, error) {
		_, err := user.CoreV1().Pods("").List(ctx, listOptions())
		return err != nil, nil
	})
}
