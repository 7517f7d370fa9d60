// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/namehash"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

var viewer = v1alpha1.RoleRef{Kind: "ClusterRole", Name: "view"}

func TestAccessProvider(t *testing.T) {
	p := newProvided(t)
	t.Run("cluster", p.describesTheCluster)
	t.Run("token", p.givesJustTheRights)
	t.Run("renewal", p.renews)
	t.Run("change", p.followsChanges)
	t.Run("unmanaged", p.overwritesNothing)
	t.Run("names", p.shortensNames)
	t.Run("not ready", p.waitsForTheCluster)
	t.Run("out of reach", p.keepsAccessToWhatIsOutOfReach)
	t.Run("vanished", p.letsGoOfAVanishedCluster)
	t.Run("withdrawn", p.takesClustersBack)
	t.Run("roles", p.followsRoles)
	t.Run("prepared", p.grantsOnlyWhatIsPrepared)
	t.Run("denied", p.takesBackWhatIsDenied)
	t.Run("ignore", p.ignores)
	t.Run("unlabelled", p.takesBackWithoutLabels)
	t.Run("oidc", p.saysThatItHasNoOIDC)
	t.Run("two providers", p.keepsOutOfEachOthersWay)
	t.Run("foreign finalizers", p.waitsForForeignFinalizers)
}

func (p *providing) describesTheCluster(t *testing.T) {
	c := p.cluster
	version := strings.TrimPrefix(harness.Must(p.target.Discovery().ServerVersion())(t).GitVersion, "v")
	if c.Labels[v1alpha1.ProviderLabel] != "existing" || c.Labels[v1alpha1.K8sVersionLabel] != version {
		t.Errorf("labels %v", c.Labels)
	}
	url, _ := c.Status.Endpoints.Get("apiserver-external")
	if url != p.plain.AdminConfig().Host || c.Annotations[v1alpha1.ProviderInfoAnnotation] != url {
		t.Errorf("endpoints %v, annotations %v", c.Status.Endpoints, c.Annotations)
	}
	if c.Status.ObservedGeneration != c.Generation || !meta.IsStatusConditionTrue(c.Status.Conditions, "Ready") {
		t.Errorf("status %+v", c.Status)
	}
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: c.Spec.Profile}}
	p.get(t, profile)
	of := profile.Spec
	if of.ProviderRef.Name != "existing" || of.ProviderConfigRef.Name != "plain" || len(of.SupportedVersions) > 0 {
		t.Errorf("profile %+v", of)
	}
}

func (p *providing) givesJustTheRights(t *testing.T) {
	ctx := t.Context()
	ar := p.request(t, "ann", p.cluster, &v1alpha1.TokenConfig{
		Permissions: []v1alpha1.PermissionsRequest{
			{Namespace: "web", Rules: rulesOf("get,list,create", "configmaps")}, {Name: "node-reader", Rules: rulesOf("list", "nodes")},
		},
		RoleRefs: []v1alpha1.RoleRef{
			{Kind: "Role", Name: "extension-apiserver-authentication-reader", Namespace: "kube-system"}, viewer,
		},
	})
	secret := p.granted(t, ar)
	h := namehash.NameHash("test", "existing", "teams", "ann")
	want := []string{
		"RoleBinding kube-system/openmcp:roleref:" + h + ":0 to extension-apiserver-authentication-reader",
		"RoleBinding web/openmcp:permission:" + h + ":0 to openmcp:permission:" + h + ":0",
		"ClusterRoleBinding node-reader to node-reader", "ClusterRoleBinding openmcp:roleref:" + h + ":1 to view",
		"Role web/openmcp:permission:" + h + ":0", "ClusterRole node-reader", "ServiceAccount accessrequests/" + h,
	}
	if got := p.left(t, "existing", "ann"); !slices.Equal(got, want) {
		t.Errorf("in the cluster is\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	ann := p.as(t, secret)
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "by-ann-"}}
	harness.Must(ann.CoreV1().ConfigMaps("web").Create(ctx, data, metav1.CreateOptions{}))(t)
	harness.Must(ann.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))(t)
	harness.Eventually(t, "the role view is in effect", func(ctx context.Context) (bool, error) {
		_, err := ann.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err == nil, err
	})
	for what, err := range map[string]error{
		"create in another namespace": harness.ErrorOf(ann.CoreV1().ConfigMaps("default").Create(ctx, data, metav1.CreateOptions{})),
		"read Secrets":                harness.ErrorOf(ann.CoreV1().Secrets("web").List(ctx, metav1.ListOptions{})),
		"delete":                      ann.CoreV1().ConfigMaps("web").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want a 403", what, err)
		}
	}
	owner := metav1.GetControllerOf(secret)
	if secret.Name != "ann.kubeconfig" || owner == nil || owner.UID != ar.UID || len(secret.Data) != 3 || secret.Type != "Opaque" {
		t.Errorf("the Secret is %s, of %v, with %d keys, of the type %s", secret.Name, owner, len(secret.Data), secret.Type)
	}
	created, _ := strconv.ParseInt(string(secret.Data["creationTimestamp"]), 10, 64)
	expires, _ := strconv.ParseInt(string(secret.Data["expirationTimestamp"]), 10, 64)
	if valid := time.Duration(expires-created) * time.Second; valid < 30*24*time.Hour-time.Minute || valid > 30*24*time.Hour+time.Minute {
		t.Errorf("the token is valid for %s", valid)
	}
	config := harness.Must(clientcmd.Load(secret.Data["kubeconfig"]))(t)
	if config.Contexts["cluster"].Cluster != "cluster" || config.CurrentContext != "cluster" || config.AuthInfos["existing"].Token == "" {
		t.Errorf("the kubeconfig has the contexts %v, now %s", config.Contexts, config.CurrentContext)
	}
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.TokenSourceNamespace, Name: string(ar.UID)}}
	p.get(t, source)
	if source.Type != v1alpha1.TokenSourceSecretType || string(source.Data["serviceAccountName"]) != h ||
		string(source.Data["accessRequest"]) != "teams/ann" {
		t.Errorf("token source %s of %s for %s", source.Type, source.Data["serviceAccountName"], source.Data["accessRequest"])
	}
	minter := p.as(t, source)
	mint := func(namespace, name string) error {
		return harness.ErrorOf(minter.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, tokenRequest(), metav1.CreateOptions{}))
	}
	if err := mint("accessrequests", h); err != nil {
		t.Errorf("the token source makes no token: %v", err)
	}
	if err := mint("kube-system", "default"); !apierrors.IsForbidden(err) {
		t.Errorf("a token in another namespace: %v, want a 403", err)
	}

	p.delete(t, ar)
	p.awaitGone(t, ar)
	p.awaitGone(t, secret)
	p.awaitGone(t, source)
	if left := p.left(t, "existing", "ann"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	harness.Eventually(t, "the token is of no use", func(ctx context.Context) (bool, error) {
		_, err := ann.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err), nil
	})
	harness.Must(p.target.CoreV1().Namespaces().Get(ctx, "web", metav1.GetOptions{}))(t)
}

func (p *providing) renews(t *testing.T) {
	ar := p.request(t, "renewed", p.cluster, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	first := p.granted(t, ar)
	past := time.Now().Add(-time.Hour)
	for what, created := range map[string]time.Time{"expired": past.Add(-time.Hour), "81% over": time.Now().Add(-81 * time.Hour)} {
		expires := created.Add(time.Hour)
		if what != "expired" {
			expires = created.Add(100 * time.Hour)
		}
		p.patch(t, first, fmt.Sprintf(`{"stringData":{"creationTimestamp":"%d","expirationTimestamp":"%d"}}`,
			created.Unix(), expires.Unix()))
		p.look(t, ar)
		harness.Eventually(t, what, func(ctx context.Context) (bool, error) {
			err := p.client.Get(ctx, client.ObjectKeyFromObject(first), first)
			seconds, _ := strconv.ParseInt(string(first.Data["expirationTimestamp"]), 10, 64)
			return time.Until(time.Unix(seconds, 0)) > 100*24*time.Hour/10, err
		})
	}
	harness.Eventually(t, "the renewed token is of use", func(ctx context.Context) (bool, error) {
		_, err := p.as(t, first).CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil, err
	})

	fresh := string(first.Data["kubeconfig"])
	p.patch(t, first, fmt.Sprintf(`{"stringData":{"creationTimestamp":"%d"}}`, time.Now().Add(-time.Hour).Unix()))
	p.look(t, ar)
	p.past(t, p.cluster)
	p.get(t, first)
	if string(first.Data["kubeconfig"]) != fresh {
		t.Error("a token that is young has been renewed")
	}
	p.delete(t, first)
	p.look(t, ar)
	harness.Eventually(t, "the Secret is made again", func(ctx context.Context) (bool, error) {
		again := &corev1.Secret{}
		err := p.client.Get(ctx, client.ObjectKeyFromObject(first), again)
		return err == nil && again.UID != first.UID, client.IgnoreNotFound(err)
	})
	p.granted(t, ar)
}

func (p *providing) followsChanges(t *testing.T) {
	h := namehash.NameHash("test", "existing", "teams", "changing")
	ar := p.request(t, "changing", p.cluster, &v1alpha1.TokenConfig{
		Permissions: []v1alpha1.PermissionsRequest{{Rules: rulesOf("list", "nodes")}}, RoleRefs: []v1alpha1.RoleRef{viewer},
	})
	p.granted(t, ar)
	p.patch(t, ar, `{"spec":{"token":{"permissions":null,"roleRefs":[{"kind":"ClusterRole","name":"edit"}]}}}`)
	p.past(t, p.cluster)
	if left := p.left(t, "existing", "changing"); len(left) != 4 {
		t.Errorf("a Granted request whose spec has changed was not waited for: %v", left)
	}
	p.pending(t, ar)
	p.granted(t, ar)
	want := []string{"ClusterRoleBinding openmcp:roleref:" + h + ":0 to edit", "ServiceAccount accessrequests/" + h}
	if left := p.left(t, "existing", "changing"); !slices.Equal(left, want) {
		t.Errorf("got %v, want %v", left, want)
	}

	// The role of a binding cannot be changed, and a foreign finalizer blocks the deletion of the previous binding.
	bindings, name := p.target.RbacV1().ClusterRoleBindings(), "openmcp:roleref:"+h+":0"
	hold := func(finalizers string) {
		harness.Must(bindings.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{}))(t)
	}
	hold(`["example.com/held"]`)
	p.patch(t, ar, `{"spec":{"token":{"roleRefs":[{"kind":"ClusterRole","name":"view"}]}}}`)
	p.pending(t, ar)
	message := p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "WaitingForRecreation")
	if !strings.Contains(message, "ClusterRoleBinding "+name+": it now refers to another role") {
		t.Error(message)
	}
	hold("null")
	p.granted(t, ar)
	if got := harness.Must(bindings.Get(t.Context(), name, metav1.GetOptions{}))(t); got.RoleRef.Name != "view" {
		t.Errorf("it is bound to %s", got.RoleRef.Name)
	}
}

func (p *providing) overwritesNothing(t *testing.T) {
	ctx := t.Context()
	theirs := harness.Must(p.target.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Rules: rulesOf("get", "pods"),
	}, metav1.CreateOptions{}))(t)
	ar := p.request(t, "greedy", p.cluster, &v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{
		{Name: "theirs", Rules: rulesOf("delete", "pods")}, {Name: "mine", Rules: rulesOf("get", "pods")},
	}})
	message := p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "ResourceNotManaged")
	if !strings.Contains(message, "ClusterRole theirs: it exists but does not contain the expected management labels") {
		t.Error(message)
	}
	p.delete(t, ar)
	p.awaitGone(t, ar)
	now := harness.Must(p.target.RbacV1().ClusterRoles().Get(ctx, "theirs", metav1.GetOptions{}))(t)
	if now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the role of somebody else has been changed: %+v", now)
	}

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "taken.kubeconfig"},
		StringData: map[string]string{"kubeconfig": "theirs"},
	}
	p.create(secret)
	ar = p.request(t, "taken", p.cluster, &v1alpha1.TokenConfig{})
	p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "ResourceNotManaged")
	p.get(t, secret)
	if string(secret.Data["kubeconfig"]) != "theirs" {
		t.Error("the Secret of somebody else has been overwritten")
	}
	if left := p.left(t, "existing", "taken"); len(left) > 0 {
		t.Errorf("rights that nobody is told how to use: %v", left)
	}
	p.delete(t, secret)
	p.look(t, ar)
	p.granted(t, ar)
}

func (p *providing) shortensNames(t *testing.T) {
	var secrets []string
	for _, end := range []string{"a", "b"} {
		token := &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}}
		ar := p.request(t, strings.Repeat("long.name-", 20)+end, p.cluster, token)
		secret := p.granted(t, ar)
		if len(secret.Name) > 63 || !strings.HasSuffix(secret.Name, ".kubeconfig") {
			t.Errorf("%s has %d characters", secret.Name, len(secret.Name))
		}
		secrets = append(secrets, secret.Name)
	}
	if secrets[0] == secrets[1] {
		t.Error("two requests share the Secret", secrets[0])
	}
}

func (p *providing) ignores(t *testing.T) {
	ar := p.request(t, "ignored", p.cluster, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	p.granted(t, ar)
	p.patch(t, ar, `{"metadata":{"annotations":{"openmcp.cloud/operation":"ignore"}}}`)
	p.delete(t, ar)
	p.past(t, p.cluster)
	p.get(t, ar)
	if len(p.left(t, "existing", "ignored")) == 0 {
		t.Error("an ignored request has been worked on")
	}
	p.patch(t, ar, `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
	p.awaitGone(t, ar)
}

// takesBackWithoutLabels verifies that a user who removes the labels of a request cannot keep the access after the request is deleted or denied.
func (p *providing) takesBackWithoutLabels(t *testing.T) {
	token := &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}}
	for _, ar := range []*v1alpha1.AccessRequest{p.request(t, "unlabelled", p.cluster, token), p.request(t, "relabelled", p.cluster, token)} {
		p.granted(t, ar)
		p.patch(t, ar, map[string]string{
			"unlabelled": `{"metadata":{"labels":null}}`,
			"relabelled": `{"metadata":{"labels":{"clusters.openmcp.cloud/provider":"nobody"}}}`,
		}[ar.Name])
		p.delete(t, ar)
		p.awaitGone(t, ar)
		if left := p.left(t, "existing", ar.Name); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func (p *providing) saysThatItHasNoOIDC(t *testing.T) {
	ar := p.request(t, "by-oidc", p.cluster, nil)
	if message := p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "OIDCNotSupported"); !strings.Contains(message, "request a token") {
		t.Error(message)
	}
	p.delete(t, ar)
	p.awaitGone(t, ar)
}
