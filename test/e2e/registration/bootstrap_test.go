// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	clusterclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/cluster/v1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// bootstrapThief has a bootstrap token, and thereby the rights of every agent that is about to join.
type bootstrapThief struct {
	config   *rest.Config
	hub      *localhub.Instance
	clusters clusterclient.ManagedClusterInterface
	kube     kubernetes.Interface
}

func newThief(t *testing.T, h *localhub.Instance) *bootstrapThief {
	t.Helper()
	config := harness.Must(harness.ClientConfig(bootstrapKubeconfig(t, h)))(t)
	return &bootstrapThief{config: config, hub: h, clusters: harness.Ours(t, config).ClusterV1().ManagedClusters(), kube: harness.Kube(t, config)}
}

// request creates a certificate request. change makes it differ from the request of a cluster's agent.
func (b *bootstrapThief) request(t *testing.T, cluster string, change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)) (
	name, keyHash string) {
	t.Helper()
	key := harness.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: registration.ClusterUser(cluster, "thief"),
		Organization: []string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup}}}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: cluster + "-", Labels: map[string]string{registration.ClusterNameLabel: cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: registration.SignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}},
	}
	if change != nil {
		change(template, csr)
	}
	csr.Spec.Request = harness.Must(cert.MakeCSRFromTemplate(key, template))(t)
	made := harness.Must(b.kube.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr, metav1.CreateOptions{}))(t)
	sum := sha256.Sum256(harness.Must(x509.MarshalPKIXPublicKey(key.Public()))(t))
	return made.Name, hex.EncodeToString(sum[:])
}

// issued reports whether a request was approved.
func (b *bootstrapThief) issued(t *testing.T, name string) bool {
	t.Helper()
	csr := harness.Must(b.kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{}))(t)
	return len(csr.Status.Certificate) > 0 || len(csr.Status.Conditions) > 0
}

// TestBootstrap_TokenOnlyCreatesClusters verifies that a user with the token that all clusters receive can ask to join and do nothing else.
func TestBootstrap_TokenOnlyCreatesClusters(t *testing.T) {
	h := harness.Hub(t)
	thief := newThief(t, h)
	admin := harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters()

	// The victim is accepted and has joined, with an agent that states its key.
	victim := harness.Unique("victim")
	harness.Must(admin.Create(t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: victim, Annotations: map[string]string{registration.AnnotationAgentKey: strings.Repeat("ab", 32)}},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}, metav1.CreateOptions{}))(t)
	harness.Eventually(t, "the victim is accepted", func(ctx context.Context) (bool, error) {
		c, err := admin.Get(ctx, victim, metav1.GetOptions{})
		return err == nil && meta.IsStatusConditionTrue(c.Status.Conditions, registration.ConditionHubAccepted), err
	})
	before := harness.Must(admin.Get(t.Context(), victim, metav1.GetOptions{}))(t)
	own := harness.Unique("own")
	harness.Must(thief.clusters.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: own}}, metav1.CreateOptions{}))(t)

	made := func(change func(*clusterv1.ManagedCluster)) error {
		c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: harness.Unique("forged")}}
		change(c)
		_, err := thief.clusters.Create(t.Context(), c, metav1.CreateOptions{})
		return err
	}
	patch := func(cluster, body string, kind types.PatchType, sub ...string) error {
		options := metav1.PatchOptions{}
		if kind == types.ApplyPatchType {
			options.FieldManager = "thief"
		}
		_, err := thief.clusters.Patch(t.Context(), cluster, kind, []byte(body), options, sub...)
		return err
	}
	raw := func(verb, path, body string) error {
		return thief.kube.Discovery().RESTClient().Verb(verb).AbsPath(path).SetHeader("Content-Type", "application/json").
			Body([]byte(body)).Do(t.Context()).Error()
	}
	const group = "/apis/" + harness.ClusterGroup
	asApplied := func(spec string) string {
		return `{"apiVersion":"` + harness.ClusterGroup + `/v1","kind":"ManagedCluster"` + spec + `}`
	}
	accept := `{"spec":{"hubAcceptsClient":true}}`
	for name, attack := range map[string]func() error{
		// Accepting.
		"make a cluster that is accepted": func() error {
			return made(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
		},
		"accept its own cluster": func() error { return patch(own, accept, types.MergePatchType) },
		"accept by apply": func() error {
			return patch(harness.Unique("applied"), asApplied(`,"spec":{"hubAcceptsClient":true}`), types.ApplyPatchType)
		},
		"accept by json patch": func() error {
			return patch(own, `[{"op":"add","path":"/spec","value":{"hubAcceptsClient":true}}]`, types.JSONPatchType)
		},
		"accept at status": func() error { return patch(own, accept, types.MergePatchType, "status") },
		"make a cluster that does not end": func() error {
			return made(func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{"example.com/stays"} })
		},
		"make the victim leave":          func() error { return patch(victim, `{"spec":{"hubAcceptsClient":false}}`, types.MergePatchType) },
		"post to managedclusters/accept": func() error { return raw("POST", group+"/v1/managedclusters/"+own+"/accept", "{}") },
		"approve a request": func() error {
			request, _ := thief.request(t, own, nil)
			return raw("PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/"+request+"/approval", "{}")
		},
		"bind itself": func() error {
			return raw("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"x"},"roleRef":{"apiGroup":`+
				`"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`)
		},
		"another token": func() error {
			return raw("POST", "/api/v1/namespaces/open-cluster-management/serviceaccounts/default/token", `{"spec":{}}`)
		},

		// Sets.
		"join a set": func() error {
			return made(func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{harness.SetLabel: "payments"} })
		},
		"say something that is reserved": func() error {
			return made(func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{harness.InfoPrefix + "region": "eu"} })
		},
		"join a set with its own cluster": func() error {
			return patch(own, `{"metadata":{"labels":{"`+harness.SetLabel+`":"payments"}}}`, types.MergePatchType)
		},

		// Taking over.
		"make the victim again": func() error {
			_, err := thief.clusters.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: victim}}, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return apierrors.NewForbidden(clusterv1.Resource("managedclusters"), victim, err)
			}
			return err
		},
		"apply to the victim": func() error { return patch(victim, asApplied(``), types.ApplyPatchType) },
		"change its key": func() error {
			return patch(victim, `{"metadata":{"annotations":{"`+registration.AnnotationAgentKey+`":"`+strings.Repeat("cd", 32)+`"}}}`, types.MergePatchType)
		},
		"change its status": func() error { return patch(victim, `{"status":{"conditions":[]}}`, types.MergePatchType, "status") },
		"delete it":         func() error { return thief.clusters.Delete(t.Context(), victim, metav1.DeleteOptions{}) },
		"delete its own":    func() error { return thief.clusters.Delete(t.Context(), own, metav1.DeleteOptions{}) },
		"delete all":        func() error { return raw("DELETE", group+"/v1/managedclusters", "") },
		"renew its lease": func() error {
			return raw("PUT", "/apis/coordination.k8s.io/v1/namespaces/"+victim+"/leases/"+registration.LeaseName, "{}")
		},
		"be it": func() error {
			config := rest.CopyConfig(thief.config)
			config.Impersonate.UserName, config.Impersonate.Groups = registration.ClusterUser(victim, "a"), []string{registration.ClusterGroup(victim)}
			_, err := harness.Ours(t, config).ClusterV1().ManagedClusters().Get(t.Context(), victim, metav1.GetOptions{})
			return err
		},

		// Reading.
		"list":                 func() error { return raw("GET", group+"/v1/managedclusters", "") },
		"watch":                func() error { return raw("GET", group+"/v1/managedclusters?watch=1&timeoutSeconds=2", "") },
		"get":                  func() error { return raw("GET", group+"/v1/managedclusters/"+victim, "") },
		"get its own":          func() error { return raw("GET", group+"/v1/managedclusters/"+own, "") },
		"list sets":            func() error { return raw("GET", group+"/v1beta2/managedclustersets", "") },
		"its namespace":        func() error { return raw("GET", "/api/v1/namespaces/"+victim, "") },
		"secrets":              func() error { return raw("GET", "/api/v1/secrets", "") },
		"list all requests":    func() error { return raw("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests", "") },
		"read what is granted": func() error { return raw("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "") },
	} {
		t.Run(name, func(t *testing.T) {
			if err := attack(); !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
	if members := harness.Must(harness.Ours(t, thief.config).ViewV1alpha1().ClusterSetMembers().List(t.Context(), metav1.ListOptions{}))(t); len(members.Items) > 0 {
		t.Errorf("it sees %d members of sets", len(members.Items))
	}
	if after := harness.Must(admin.Get(t.Context(), victim, metav1.GetOptions{}))(t); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the victim has changed: %+v", after)
	}

	t.Run("certificates", func(t *testing.T) { thief.certificates(t, victim) })
	t.Run("a rival's certificate", thief.rival)
	t.Run("a foreigner's certificate", thief.foreigner)
}

// certificates requests certificates under false names. To verify that they are not approved, it finally makes a valid request, which is approved
// after the previous requests were processed.
func (b *bootstrapThief) certificates(t *testing.T, victim string) {
	admin := harness.Ours(t, b.hub.AdminConfig()).ClusterV1().ManagedClusters()
	type forgery = func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)
	forged := map[string]string{}
	ask := func(what, cluster string, change forgery) { forged[what], _ = b.request(t, cluster, change) }
	ask("the victim's, with another key", victim, nil)
	unaccepted := harness.Unique("unaccepted")
	harness.Must(b.clusters.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: unaccepted}}, metav1.CreateOptions{}))(t)
	ask("that of a cluster that is not accepted", unaccepted, nil)
	ask("that of a cluster that there is not", harness.Unique("nobody"), nil)

	// The next requests are in the name of a cluster of its own that an admin has accepted.
	own := harness.Unique("accepted")
	ask("one of an admin's group", own, func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
		r.Subject.Organization = append(r.Subject.Organization, "platform-admins")
	})
	ask("the victim's, with the label of its own", own, func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
		r.Subject = pkix.Name{CommonName: registration.ClusterUser(victim, "a"),
			Organization: []string{registration.ClusterGroup(victim), registration.ManagedClustersGroup}}
	})
	ask("one of both groups", own, func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
		r.Subject.Organization = append(r.Subject.Organization, registration.ClusterGroup(victim))
	})
	ask("a server's", own, func(_ *x509.CertificateRequest, csr *certificatesv1.CertificateSigningRequest) {
		csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.UsageServerAuth)
	})
	ask("a node's", own, func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
		r.Subject = pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}}
	})
	ask("one with a name of a server in it", own, func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequest) {
		r.DNSNames = []string{"kubernetes"}
	})

	right, hash := b.request(t, own, nil)
	harness.Must(b.clusters.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: own,
		Annotations: map[string]string{registration.AnnotationAgentKey: hash}}}, metav1.CreateOptions{}))(t)
	harness.Must(admin.Patch(t.Context(), own, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	harness.Eventually(t, "the right certificate is issued", func(context.Context) (bool, error) { return b.issued(t, right), nil })
	for what, name := range forged {
		if b.issued(t, name) {
			t.Errorf("%s certificate was issued", what)
		}
	}

	// A second request of the same cluster needs an admin, as it may come from a thief.
	second, _ := b.request(t, own, nil)
	third, thirdHash := b.request(t, harness.Unique("third"), nil)
	cluster := harness.Must(b.kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), third, metav1.GetOptions{}))(t).Labels[registration.ClusterNameLabel]
	harness.Must(b.clusters.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster,
		Annotations: map[string]string{registration.AnnotationAgentKey: thirdHash}}}, metav1.CreateOptions{}))(t)
	harness.Must(admin.Patch(t.Context(), cluster, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	harness.Eventually(t, "a later certificate is issued", func(context.Context) (bool, error) { return b.issued(t, third), nil })
	if b.issued(t, second) {
		t.Error("a certificate for another key of a cluster that has one was issued")
	}
}

// rival requests the certificate of a cluster whose agent does not state its key, as upstream's agents do.
func (b *bootstrapThief) rival(t *testing.T) {
	admin := harness.Ours(t, b.hub.AdminConfig()).ClusterV1().ManagedClusters()
	joining := func() (name string) {
		name = harness.Unique("joining")
		harness.Must(b.clusters.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
		return name
	}
	// accept accepts a cluster with these requests, which are older than the acceptance by more than the clocks may differ.
	accept := func(name string, requests ...string) {
		for _, request := range requests {
			made := harness.Must(b.kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), request, metav1.GetOptions{}))(t).CreationTimestamp
			harness.Eventually(t, "the request has been there for a while", func(context.Context) (bool, error) {
				return time.Since(made.Time) > 6*time.Second, nil
			})
		}
		harness.Must(admin.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	}
	waits := func(name, why string) {
		t.Helper()
		harness.Eventually(t, "the cluster says that a request waits", func(ctx context.Context) (bool, error) {
			c, err := admin.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			w := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionRequestWaits)
			return harness.Holds(w != nil && w.Status == metav1.ConditionTrue && strings.Contains(w.Message, why), c.Status.Conditions)
		})
	}
	one := joining()
	agents, _ := b.request(t, one, nil)
	accept(one, agents)
	harness.Eventually(t, "the only one that asks is let in", func(context.Context) (bool, error) { return b.issued(t, agents), nil })
	rivals, _ := b.request(t, one, nil)
	waits(one, rivals+" waits for an admin: it is for another key")

	both := joining()
	agents, _ = b.request(t, both, nil)
	rival, _ := b.request(t, both, nil)
	accept(both, agents, rival)
	waits(both, "several keys")

	// The cluster is accepted when it is created, after the rival's request.
	early := harness.Unique("early")
	beforehand, _ := b.request(t, early, nil)
	harness.Must(admin.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: early},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}, metav1.CreateOptions{}))(t)
	waits(early, "when it was accepted")
	for _, name := range []string{rivals, agents, rival, beforehand} {
		if b.issued(t, name) {
			t.Errorf("the certificate of %s was issued", name)
		}
	}
	// The admin decides, and the agent requests again with that key.
	if out, err := (harness.Plugin{Kubeconfig: b.hub.AdminKubeconfig()}).Command(t, "accept", "--clusters", both, "--csr", agents).CombinedOutput(); err != nil {
		t.Fatalf("accept --csr: %v: %s", err, out)
	}
	harness.Eventually(t, "the one that the admin has chosen is let in", func(context.Context) (bool, error) { return b.issued(t, agents), nil })
	harness.Eventually(t, "its key is pinned", func(ctx context.Context) (bool, error) {
		kept, err := harness.Kube(t, b.hub.AdminConfig()).CoreV1().ConfigMaps(record.Namespace).Get(ctx, both, metav1.GetOptions{})
		return err == nil && len(record.Of(kept).Key) == 2*sha256.Size, err
	})
}

// foreigner has the rights of a bootstrap identity without being one: the requests of this user wait for an admin.
func (b *bootstrapThief) foreigner(t *testing.T) {
	admin := harness.Kube(t, b.hub.AdminConfig())
	user := harness.Unique("user")
	harness.Grant(t, b.hub, user, user, harness.RuleIn("certificates.k8s.io", "create,get", "certificatesigningrequests"), harness.Rule("create", "managedclusters"),
		harness.Rule("create", "managedclusters/label", harness.SetLabel+":default"))
	foreign := *b
	foreign.config = b.hub.UserConfig(user)
	foreign.kube, foreign.clusters = harness.Kube(t, foreign.config), harness.Ours(t, foreign.config).ClusterV1().ManagedClusters()
	who := harness.Must(foreign.kube.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t)
	if who.Status.UserInfo.Username != user {
		t.Fatalf("it is %s", who.Status.UserInfo.Username)
	}

	cluster := harness.Unique("foreign")
	request, hash := foreign.request(t, cluster, nil)
	harness.Must(foreign.clusters.Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster,
		Annotations: map[string]string{registration.AnnotationAgentKey: hash}}}, metav1.CreateOptions{}))(t)
	harness.Must(harness.Ours(t, b.hub.AdminConfig()).ClusterV1().ManagedClusters().Patch(t.Context(), cluster, types.MergePatchType,
		[]byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	// An event tells an admin why the request waits.
	harness.Eventually(t, "an event says why the request waits", func(ctx context.Context) (bool, error) {
		events, err := admin.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Regarding.Name == request && strings.Contains(e.Note, user) {
				return true, nil
			}
		}
		return false, fmt.Errorf("%d other events", len(events.Items))
	})
	if foreign.issued(t, request) {
		t.Error("its certificate was issued")
	}
}
