// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/test/await"
)

const (
	// maxHeap is the maximum of memory, in MiB, that hub-operator and the tests may use for all hostile clusters at one time. Its pod has 512 MiB.
	maxHeap = 256
	// maxLooks is the maximum number of reconciles of a cluster within the test, and maxWrites the maximum number of writes to the management
	// cluster because of it: about fifteen objects are created, updated and deleted, and each change of a condition is a write.
	maxLooks, maxWrites = 30, 100
)

// ahead is a clock that can be set.
type ahead struct{ by atomic.Int64 }

func (a *ahead) Now() time.Time                  { return time.Now().Add(time.Duration(a.by.Load())) }
func (a *ahead) Since(t time.Time) time.Duration { return a.Now().Sub(t) }

// hostile is a Klusterlet of a managed cluster that lies.
type hostile struct {
	*operatorv1.Klusterlet
	name  string
	front *operatortest.Front
	lie
}

type lie struct {
	tells operatortest.Lie
	// says is part of the message of the condition Applied. If it is empty, everything can be applied.
	says string
	// source replaces the credentials of the kubeconfig. It is rejected, so that no request is sent, and says is part of the message of the condition
	// ReadyToApply.
	source string
	// stays means that, when the Klusterlet is deleted, the cluster reports something that is never gone.
	stays bool
}

// fields is JSON with many fields.
var fields = `{"kind":"Namespace","apiVersion":"v1","metadata":{"labels":{`

// of returns the Klusterlet whose objects are watched.
func of(r *http.Request) string {
	_, rest, _ := strings.Cut(r.URL.Query().Get("labelSelector"), operatorv1.LabelKlusterlet+"=")
	name, _, _ := strings.Cut(rest, ",")
	return name
}

// news returns endless events of an object that the Klusterlet owns.
func news(r *http.Request, i int) string {
	return operatortest.Event("MODIFIED", "open-cluster-management-"+of(r), of(r)+"-work-sa", i)
}

func same(text string) func(*http.Request, int) string {
	return func(*http.Request, int) string { return text }
}

// metadataOf returns the metadata in a response.
func metadataOf(o map[string]any) map[string]any {
	m, _ := o["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	return m
}

// ofAccounts changes only ServiceAccounts.
func ofAccounts(change func(m map[string]any)) operatortest.Lie {
	return operatortest.Changes(func(o map[string]any) {
		if o["kind"] == "ServiceAccount" {
			change(metadataOf(o))
		}
	})
}

// isOf reports whether an account belongs to the part that registers the cluster, and not to the one that applies works.
func isOf(account string) bool { return strings.Contains(account, "-registration-sa") }

// tokens answers token requests of the two parts.
func tokens(registration, work string, lasts time.Duration) operatortest.Lie {
	return operatortest.ToTokens(func(w http.ResponseWriter, r *http.Request, truth http.Handler) {
		token := work
		if isOf(r.URL.Path) {
			token = registration
		}
		answer := fmt.Sprintf(`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{},"status":{"token":%q,"expirationTimestamp":%q}}`,
			token, time.Now().Add(lasts).UTC().Format(time.RFC3339))
		operatortest.Respond(http.StatusCreated, answer)(w, r, truth)
	})
}

// lies returns the lies of hostile clusters. inside is a server in the network of the management cluster. A cluster that sends no response closes its
// connections when enough is closed.
func lies(inside string, enough chan struct{}) map[string]lie {
	long := strings.Repeat(operatortest.Marker, 1<<16)
	foreign := `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"kube-system","name":"` + operatortest.Marker + `","uid":"","resourceVersion":"` + operatortest.Marker + `"}}`
	return map[string]lie{
		"redirects": {tells: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			http.Redirect(w, r, inside+r.URL.Path, http.StatusTemporaryRedirect)
		}, says: "a redirect, which is not followed"},
		"a text without end":     {tells: operatortest.RespondForever(fields+`"a":"`, same(long)), says: "exceeds the maximum of"},
		"fields without end":     {tells: operatortest.RespondForever(fields, func(_ *http.Request, i int) string { return fmt.Sprintf(`"a%d":"",`, i) }), says: "exceeds the maximum of"},
		"no JSON":                {tells: operatortest.Respond(http.StatusOK, `{"kind": "`+operatortest.Marker), says: " "},
		"lists and no end":       {tells: operatortest.Respond(http.StatusOK, strings.Repeat(`{"items":[`, 50_000)), says: " "},
		"another kind":           {tells: operatortest.Respond(http.StatusOK, foreign), says: " "},
		"a failure that is long": {tells: operatortest.Respond(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"`+operatortest.Marker+`\u001b[2J\n`+long[:1<<12]+`"}`), says: operatortest.Marker},
		"a slow answer":          {tells: operatortest.Hang(enough), says: "has not responded within 30s"},
		"other names, versions and UIDs": {tells: operatortest.Changes(func(o map[string]any) {
			m := metadataOf(o)
			m["namespace"], m["name"], m["uid"], m["resourceVersion"] = "kube-system", operatortest.Marker, operatortest.Marker, strings.Repeat("9", 1<<20)
		}), says: " ", stays: true},
		"no UID, and one without end": {tells: ofAccounts(func(m map[string]any) {
			m["uid"] = long
			if isOf(fmt.Sprint(m["name"])) {
				delete(m, "uid")
			}
		}), says: "has a UID of 0 bytes", stays: true},
		"another UID each time": {tells: func(w http.ResponseWriter, r *http.Request, truth http.Handler) {
			tells := ofAccounts(func(m map[string]any) { m["uid"] = string(uuid.NewUUID()) })
			if r.URL.Query().Get("watch") != "" {
				tells = operatortest.RespondForever("", news)
			}
			tells(w, r, truth)
		}, says: "does not match the UID", stays: true},
		"no token, and one without end": {tells: tokens("", long, time.Hour), says: "but the token cannot be used"},
		"a token of lines":              {tells: tokens(operatortest.Marker+"\r\nImpersonate-User: admin", operatortest.Marker+"\u202e", time.Hour), says: "but the token cannot be used"},
		"a token of yesterday":          {tells: tokens(operatortest.Marker, operatortest.Marker, -24*time.Hour), says: "had expired before it was issued"},
		"a token of centuries":          {tells: tokens(operatortest.Marker, operatortest.Marker, 100_000*time.Hour), says: "do the clocks differ?"},
		"events without end":            {tells: operatortest.ToWatches(operatortest.RespondForever("", news))},
		"foreign events": {tells: operatortest.ToWatches(operatortest.RespondForever("", func(_ *http.Request, i int) string {
			return operatortest.Event("ADDED", "kube-system", operatortest.Marker, i)
		}))},
		"an event without end":    {tells: operatortest.ToWatches(operatortest.RespondForever(`{"type":"ADDED","object":{"kind":"`, same(long)))},
		"events that are invalid": {tells: operatortest.ToWatches(operatortest.Respond(http.StatusOK, `{"type":"`+operatortest.Marker+`"}{{{`))},
		"a kubeconfig of a file":  {source: "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", says: "FilePath"},
		"a kubeconfig of a program": {source: "exec: {command: sh, args: [-c, 'curl " + inside + "'], apiVersion: client.authentication.k8s.io/v1}",
			says: "ExecPlugin"},
		"events of another kind": {tells: operatortest.ToWatches(operatortest.Respond(http.StatusOK, strings.Repeat(`{"type":"ADDED","object":`+foreign+"}\n", 100)))},
	}
}

// TestAttack_HostileClusterDoesNotAffectOthers: many managed clusters lie, each in a different way, beside a good one. Their Klusterlets report what is
// wrong and can be deleted, and nothing that the clusters send appears elsewhere on the management cluster.
func TestAttack_HostileClusterDoesNotAffectOthers(t *testing.T) {
	managed := operatortest.Shared.Config(t, "managed")
	var visits atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(inside.Close)
	asked, clock := &counter{}, &ahead{}
	c := asOperatorThrough(t, func(next http.RoundTripper) http.RoundTripper { return counting{asked, next} },
		func(o *operator.Options) { o.Klusterlets.Clock = clock })
	heap, enough := operatortest.Heap(t), make(chan struct{})
	began := time.Now()

	var all []*hostile
	var making sync.WaitGroup
	for name, l := range lies(inside.URL, enough) {
		h := &hostile{name: name, lie: l, front: &operatortest.Front{Lies: l.tells}}
		all = append(all, h)
		source := h.front.Start(t, managed)
		if l.source != "" {
			source = []byte(strings.Replace(string(source), "token: of-the-front", l.source, 1))
		}
		making.Go(func() { h.Klusterlet = made(t, c, operatorv1.InstallModeHosted, source) })
	}
	making.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, h := range all {
		operatortest.Eventually(t, h.name+" is asked", func() bool { return len(h.front.Requests()) > 0 || h.source != "" })
	}

	// The good one is created when all others exist, and changes.
	source, err := operatortest.Kubeconfig(managed)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	good := made(t, c, operatorv1.InstallModeHosted, source)
	waits(t, c, good, operatorv1.ConditionKlusterletApplied, metav1.ConditionTrue)
	t.Logf("the good one is applied after %s, with %d hostile ones", time.Since(start), len(all))
	start = time.Now()
	good.Spec.PriorityClassName = "system-cluster-critical"
	if err := c.Update(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the pods are changed", func() bool {
		d := &appsv1.Deployment{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: good.AgentNamespace(), Name: good.WorkDeployment()}, d)
		return err == nil && d.Spec.Template.Spec.PriorityClassName == good.Spec.PriorityClassName
	})
	t.Logf("a change takes %s", time.Since(start))

	until := time.Now().Add(await.Limit)
	for _, h := range all {
		h.saysWhatIsWrong(t, c, until)
	}
	gone(t, c, good)
	close(enough) // each reconcile would take half a minute
	for _, h := range all {
		if err := c.Delete(t.Context(), h.Klusterlet); err != nil {
			t.Fatal(err)
		}
		if h.stays {
			// The deletion waits without end for what still exists, or is claimed to. It ends when the user deletes the kubeconfig of the cluster.
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.AgentNamespace(), Name: operatorv1.ExternalManagedKubeconfig}}
			if err := c.Delete(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, h := range all {
		operatortest.Eventually(t, h.name+" is gone, or says until when it is waited for", func() bool {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(h.Klusterlet), h.Klusterlet)
			h.isClean(t)
			applied := meta.FindStatusCondition(h.Status.Conditions, operatorv1.ConditionKlusterletApplied)
			return apierrors.IsNotFound(err) || applied != nil && applied.Reason == "ManagedClusterUnreachable"
		})
	}
	clock.by.Store(int64(6 * time.Minute))
	for _, h := range all {
		operatortest.Eventually(t, h.name+" is gone", func() bool {
			return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(h.Klusterlet), h.Klusterlet))
		})
		h.costs(t, asked, time.Since(began))
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("%d requests went to another server", n)
	}
	most := heap()
	t.Logf("the heap has grown by %d MiB at most", most)
	if most > maxHeap {
		t.Errorf("the heap has grown by %d MiB, want %d at most", most, maxHeap)
	}
}

// saysWhatIsWrong waits until the condition of the Klusterlet does, and verifies that nothing from the cluster appears elsewhere.
func (h *hostile) saysWhatIsWrong(t *testing.T, c client.Client, until time.Time) {
	t.Helper()
	conditionType := operatorv1.ConditionKlusterletApplied
	if h.source != "" {
		conditionType = operatorv1.ConditionReadyToApply
	}
	says := &metav1.Condition{}
	for isSaid := false; !isSaid; time.Sleep(100 * time.Millisecond) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(h.Klusterlet), h.Klusterlet); err != nil {
			t.Fatal(err)
		}
		says = meta.FindStatusCondition(h.Status.Conditions, conditionType)
		if says != nil {
			isSaid = says.Status == metav1.ConditionTrue == (h.says == "") && strings.Contains(says.Message, h.says)
		}
		if !isSaid && time.Now().After(until) {
			t.Errorf("%s: it never says %q, but %+v", h.name, h.says, says)
			return
		}
	}
	t.Logf("%s: %.200s", h.name, says.Message)
	if n := len(h.front.Requests()); h.source != "" && n > 0 {
		t.Errorf("%s: the cluster was asked %d times", h.name, n)
	}
	h.isClean(t)
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.ServiceAccountList{}, &appsv1.DeploymentList{}} {
		if err := c.List(t.Context(), list, client.InNamespace(h.AgentNamespace())); err != nil {
			t.Fatal(err)
		}
		if secrets, ok := list.(*corev1.SecretList); ok {
			for _, secret := range secrets.Items {
				for key, value := range secret.Data {
					if len(value) > 16<<10 || strings.Contains(string(value), operatortest.Marker) {
						t.Errorf("%s: the key %s of Secret %s has %d bytes: %.100s", h.name, key, secret.Name, len(value), value)
					}
				}
			}
		}
		if data, err := json.Marshal(list); err != nil || strings.Contains(string(data), operatortest.Marker) {
			t.Errorf("%s: what the cluster says is in a %T: %v", h.name, list, err)
		}
	}
}

// isClean verifies that the texts of the Klusterlet are short lines, and that texts of the cluster are only in its conditions.
func (h *hostile) isClean(t *testing.T) {
	t.Helper()
	k := h.DeepCopy()
	for _, condition := range k.Status.Conditions {
		if len(condition.Message) > 1000 || strings.ContainsFunc(condition.Message, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			t.Errorf("%s: %s has a message of %d bytes: %.1200q", h.name, condition.Type, len(condition.Message), condition.Message)
		}
	}
	k.Status.Conditions = nil
	if data, err := json.Marshal(k); err != nil || strings.Contains(string(data), operatortest.Marker) {
		t.Errorf("%s: what the cluster says is in the Klusterlet: %s: %v", h.name, data, err)
	}
}

// costs verifies that only a few requests are sent to either cluster.
func (h *hostile) costs(t *testing.T, management *counter, within time.Duration) {
	t.Helper()
	looks, tokens := 0, 0
	for _, request := range h.front.Requests() {
		switch {
		case strings.HasPrefix(request, "GET ") && strings.HasSuffix(request, "/namespaces/"+h.ManagedNamespace()):
			looks++
		case strings.HasSuffix(request, "/token"):
			tokens++
		case strings.HasSuffix(request, "/api"), strings.HasSuffix(request, "/apis"), strings.Contains(request, "/openapi"), strings.HasSuffix(request, "/version"):
			t.Errorf("%s: all that it serves is asked for: %s", h.name, request)
		}
	}
	writes := 0
	for _, request := range management.requests(h.Name) {
		if !strings.HasPrefix(request, "GET ") {
			writes++
		}
	}
	t.Logf("%s: within %s there were %d requests, %d looks, %d watches and %d tokens; %d writes on the management cluster", h.name,
		within.Round(time.Second), len(h.front.Requests()), looks, h.front.Watches(), tokens, writes)
	// A namespace is read once in a reconcile.
	if looks > maxLooks || tokens > 10 || writes > maxWrites || h.front.Watches() > 100 {
		t.Errorf("%s: these are too many", h.name)
	}
}
