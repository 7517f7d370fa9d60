// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/namehash"
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
	t.Run("vanished", p.letsGoOfAVanishedCluster)
	t.Run("denied", p.takesBackWhatIsDenied)
	t.Run("ignore", p.ignores)
	t.Run("oidc", p.saysThatItHasNoOIDC)
	t.Run("two providers", p.keepsOutOfEachOthersWay)
	t.Run("foreign finalizers", p.waitsForForeignFinalizers)
}

func (p *providing) describesTheCluster(t *testing.T) {
	c := p.cluster
	version := strings.TrimPrefix(must(p.target.Discovery().ServerVersion())(t).GitVersion, "v")
	if c.Labels[v1alpha1.ProviderLabel] != "existing" || c.Labels[v1alpha1.K8sVersionLabel] != version {
		t.Errorf("labels %v", c.Labels)
	}
	if url, _ := c.Status.Endpoints.Get("apiserver-external"); url != p.plain.AdminConfig().Host || c.Annotations[v1alpha1.ProviderInfoAnnotation] != url {
		t.Errorf("endpoints %v, annotations %v", c.Status.Endpoints, c.Annotations)
	}
	if c.Status.ObservedGeneration != c.Generation || !meta.IsStatusConditionTrue(c.Status.Conditions, "Ready") {
		t.Errorf("status %+v", c.Status)
	}
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: c.Spec.Profile}}
	p.get(t, profile)
	if profile.Spec.ProviderRef.Name != "existing" || profile.Spec.ProviderConfigRef.Name != "plain" || len(profile.Spec.SupportedVersions) > 0 {
		t.Errorf("profile %+v", profile.Spec)
	}
}

func (p *providing) givesJustTheRights(t *testing.T) {
	ctx := t.Context()
	ar := p.request(t, "ann", p.cluster, &v1alpha1.TokenConfig{
		Permissions: []v1alpha1.PermissionsRequest{
			{Namespace: "web", Rules: rulesOf("get,list,create", "configmaps")}, {Name: "node-reader", Rules: rulesOf("list", "nodes")},
		},
		RoleRefs: []v1alpha1.RoleRef{{Kind: "Role", Name: "extension-apiserver-authentication-reader", Namespace: "kube-system"}, viewer},
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
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "by-ann-"}}
	must(ann.CoreV1().ConfigMaps("web").Create(ctx, config, metav1.CreateOptions{}))(t)
	must(ann.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))(t)
	eventually(t, "the role view is in effect", func(ctx context.Context) (bool, error) {
		_, err := ann.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err == nil, err
	})
	for what, err := range map[string]error{
		"create in another namespace": only(ann.CoreV1().ConfigMaps("default").Create(ctx, config, metav1.CreateOptions{})),
		"read Secrets":                only(ann.CoreV1().Secrets("web").List(ctx, metav1.ListOptions{})),
		"delete":                      ann.CoreV1().ConfigMaps("web").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want a 403", what, err)
		}
	}
	if owner := metav1.GetControllerOf(secret); secret.Name != "ann.kubeconfig" || owner == nil || owner.UID != ar.UID || len(secret.Data) != 3 {
		t.Errorf("the Secret is %s, of %v, with %d keys", secret.Name, owner, len(secret.Data))
	}
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.TokenSourceNamespace, Name: string(ar.UID)}}
	p.get(t, source)
	if source.Type != v1alpha1.TokenSourceSecretType || string(source.Data["serviceAccountName"]) != h || string(source.Data["accessRequest"]) != "teams/ann" {
		t.Errorf("token source %s of %s for %s", source.Type, source.Data["serviceAccountName"], source.Data["accessRequest"])
	}
	minter := p.as(t, source)
	if _, err := minter.CoreV1().ServiceAccounts("accessrequests").CreateToken(ctx, h, tokenRequest(), metav1.CreateOptions{}); err != nil {
		t.Errorf("the token source makes no token: %v", err)
	}
	if _, err := minter.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "default", tokenRequest(), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a token in another namespace: %v, want a 403", err)
	}

	p.delete(t, ar)
	p.awaitGone(t, ar)
	p.awaitGone(t, secret)
	p.awaitGone(t, source)
	if left := p.left(t, "existing", "ann"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	eventually(t, "the token is of no use", func(ctx context.Context) (bool, error) {
		_, err := ann.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err), nil
	})
	must(p.target.CoreV1().Namespaces().Get(ctx, "web", metav1.GetOptions{}))(t)
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
		p.patch(t, first, fmt.Sprintf(`{"stringData":{"creationTimestamp":"%d","expirationTimestamp":"%d"}}`, created.Unix(), expires.Unix()))
		eventually(t, what, func(ctx context.Context) (bool, error) {
			err := p.client.Get(ctx, client.ObjectKeyFromObject(first), first)
			seconds, _ := strconv.ParseInt(string(first.Data["expirationTimestamp"]), 10, 64)
			return time.Until(time.Unix(seconds, 0)) > 100*24*time.Hour/10, err
		})
	}
	eventually(t, "the renewed token is of use", func(ctx context.Context) (bool, error) {
		_, err := p.as(t, first).CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil, err
	})

	fresh := string(first.Data["kubeconfig"])
	p.patch(t, first, fmt.Sprintf(`{"stringData":{"creationTimestamp":"%d"}}`, time.Now().Add(-time.Hour).Unix()))
	time.Sleep(time.Second)
	if p.get(t, first); string(first.Data["kubeconfig"]) != fresh {
		t.Error("a token that is young has been renewed")
	}
	p.delete(t, first)
	eventually(t, "the Secret is made again", func(ctx context.Context) (bool, error) {
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
	time.Sleep(500 * time.Millisecond)
	if left := p.left(t, "existing", "changing"); len(left) != 4 {
		t.Errorf("a Granted request whose spec has changed was not waited for: %v", left)
	}
	p.pending(t, ar)
	p.granted(t, ar)
	want := []string{"ClusterRoleBinding openmcp:roleref:" + h + ":0 to edit", "ServiceAccount accessrequests/" + h}
	if left := p.left(t, "existing", "changing"); !slices.Equal(left, want) {
		t.Errorf("got %v, want %v", left, want)
	}
}

func (p *providing) overwritesNothing(t *testing.T) {
	ctx := t.Context()
	theirs := must(p.target.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
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
	if now := must(p.target.RbacV1().ClusterRoles().Get(ctx, "theirs", metav1.GetOptions{}))(t); now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the role of somebody else has been changed: %+v", now)
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "taken.kubeconfig"}, StringData: map[string]string{"kubeconfig": "theirs"}}
	p.create(secret)
	ar = p.request(t, "taken", p.cluster, &v1alpha1.TokenConfig{})
	p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "ResourceNotManaged")
	if p.get(t, secret); string(secret.Data["kubeconfig"]) != "theirs" {
		t.Error("the Secret of somebody else has been overwritten")
	}
	p.delete(t, secret)
	p.granted(t, ar)
}

func (p *providing) shortensNames(t *testing.T) {
	var secrets []string
	for _, end := range []string{"a", "b"} {
		ar := p.request(t, strings.Repeat("long.name-", 20)+end, p.cluster, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
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

func (p *providing) takesBackWhatIsDenied(t *testing.T) {
	ar := p.request(t, "denied", p.cluster, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	secret := p.granted(t, ar)
	p.patchStatus(t, ar, `{"status":{"phase":"Denied"}}`)
	p.awaitGone(t, secret)
	eventually(t, "the rights are gone", func(context.Context) (bool, error) { return len(p.left(t, "existing", "denied")) == 0, nil })
	if p.get(t, ar); ar.Status.Phase != v1alpha1.REQUEST_DENIED {
		t.Errorf("status %+v", ar.Status)
	}
	p.delete(t, ar)
	p.awaitGone(t, ar)
}

func (p *providing) ignores(t *testing.T) {
	ar := p.request(t, "ignored", p.cluster, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	p.granted(t, ar)
	p.patch(t, ar, `{"metadata":{"annotations":{"openmcp.cloud/operation":"ignore"}}}`)
	p.delete(t, ar)
	time.Sleep(time.Second)
	if p.get(t, ar); len(p.left(t, "existing", "ignored")) == 0 {
		t.Error("an ignored request has been worked on")
	}
	p.patch(t, ar, `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
	p.awaitGone(t, ar)
}

func (p *providing) saysThatItHasNoOIDC(t *testing.T) {
	ar := p.request(t, "by-oidc", p.cluster, nil)
	if message := p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "OIDCNotSupported"); !strings.Contains(message, "ask for a token") {
		t.Error(message)
	}
	p.delete(t, ar)
	p.awaitGone(t, ar)
}

func only[T any](_ T, err error) error { return err }
