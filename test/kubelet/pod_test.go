// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const whole = `
securityContext: {runAsUser: 65532, runAsGroup: 65532, fsGroup: 2000}
hostAliases: [{ip: 192.0.2.1, hostnames: [hub.example.com]}]
containers:
- name: main
  args: [--address=:8080, --write=/data/$(NAMED)=$(PASSWORD), $$(PASSWORD), $(HOME)]
  ports: [{name: web, containerPort: 8080}]
  readinessProbe: {httpGet: {path: /ready, port: web}}
  env:
  - {name: NAMED, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: SPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: PASSWORD, valueFrom: {secretKeyRef: {name: s, key: password}}}
  - {name: MISSING, valueFrom: {secretKeyRef: {name: s, key: missing, optional: true}}}
  - {name: COLOR, valueFrom: {configMapKeyRef: {name: c, key: color}}}
  - {name: BOTH, value: $(NAMED)/$(COLOR)}
  volumeMounts:
  - {name: secret, mountPath: /secret}
  - {name: items, mountPath: /items, readOnly: true}
  - {name: absent, mountPath: /absent}
  - {name: config, mountPath: /etc/config}
  - {name: data, mountPath: /data}
volumes:
- {name: secret, secret: {secretName: s, defaultMode: 0440}}
- {name: items, secret: {secretName: s, items: [{key: password, path: a/word}]}}
- {name: absent, secret: {secretName: later, optional: true}}
- {name: config, configMap: {name: c}}
- {name: data, emptyDir: {}}
`

// TestPod_HasWhatSpecHas verifies that a pod gets what its spec has, and nothing else, and that mounted objects are updated.
func TestPod_HasWhatSpecHas(t *testing.T) {
	t.Setenv("OF_THE_TEST", "leaks")
	f := newFixture(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"password": "p1", "user": "u"}}
	// It waits until these exist.
	f.create("p", whole)
	f.await("p", "says what it waits for", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodPending && len(pod.Status.ContainerStatuses) == 1 &&
			strings.Contains(pod.Status.ContainerStatuses[0].State.Waiting.Message, "not found")
	})
	secrets, configMaps := f.client.CoreV1().Secrets(f.namespace), f.client.CoreV1().ConfigMaps(f.namespace)
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"color": "blue"}}
	if _, err := configMaps.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.await("p", "is ready", isReady)

	var me struct {
		Env      []string
		UID, GID int
		Groups   []int
		Host     string
	}
	if err := json.Unmarshal([]byte(f.mustAsk("GET", "p", "/me")), &me); err != nil {
		t.Fatal(err)
	}
	if me.UID != 65532 || me.GID != 65532 || me.Host != "p" || os.Getuid() == 0 && !slices.Equal(me.Groups, []int{2000}) {
		t.Errorf("it runs as %+v", me)
	}
	want := []string{"BOTH=p/blue", "COLOR=blue", "HOME=/", "HOSTNAME=p", "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + f.port,
		"KUBERNETES_SERVICE_PORT_HTTPS=" + f.port, "NAMED=p", "PASSWORD=p1", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"SPACE=" + f.namespace}
	if !slices.Equal(me.Env, want) {
		t.Errorf("its environment is %q", me.Env)
	}
	if log := f.Logs(f.namespace, "p"); !strings.Contains(log, "arguments: --address=:8080 --write=/data/p=p1 $(PASSWORD) $(HOME)\n") {
		t.Errorf("it has said %q", log)
	}
	for file, want := range map[string]string{
		"/":            "absent data dev etc items secret usr var",
		"/usr/local":   "bin",
		"/etc":         "config hostname hosts resolv.conf",
		"/secret":      "..data password user",
		"/items":       "..data a",
		"/items/a":     "word",
		"/absent":      "..data",
		"/data":        "p",
		"/data/p":      "p1",
		"/secret/user": "u",
		"/etc/hosts":   "127.0.0.1 localhost p ::1 localhost 192.0.2.1 hub.example.com",
		"/var/run/secrets/kubernetes.io/serviceaccount":           "..data ca.crt namespace token",
		"/var/run/secrets/kubernetes.io/serviceaccount/namespace": f.namespace,
	} {
		got := slices.DeleteFunc(strings.Fields(f.mustAsk("GET", "p", "/file"+file)), func(name string) bool { return strings.HasPrefix(name, "..2") })
		if strings.Join(got, " ") != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	for _, file := range []string{"/new", "/tmp/new", "/etc/hosts", "/secret/new", "/secret/user", "/items/new", "/usr/local/bin/component"} {
		if _, err := f.ask("PUT", "p", "/file"+file); err == nil {
			t.Errorf("it can write %s", file)
		}
	}

	// The token is bound to this pod, and is renewed.
	const tokenFile = "/file/var/run/secrets/kubernetes.io/serviceaccount/token"
	token := f.mustAsk("GET", "p", tokenFile)
	who, err := clientOf(t, f, token).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || who.Status.UserInfo.Username != "system:serviceaccount:"+f.namespace+":default" ||
		!slices.Equal(who.Status.UserInfo.Extra["authentication.kubernetes.io/pod-name"], authenticationv1.ExtraValue{"p"}) {
		t.Errorf("its token is of %+v, %v", who, err)
	}
	f.RenewTokens()
	f.eventually("it has another token", func(context.Context) error {
		if f.mustAsk("GET", "p", tokenFile) == token {
			return errors.New("it is the same")
		}
		return nil
	})

	// Files are updated, the environment is not.
	secret.StringData = map[string]string{"password": "p2"}
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	later := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "later"}, StringData: map[string]string{"key": "here"}}
	if _, err := secrets.Create(t.Context(), later, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the files follow", func(context.Context) error {
		got := fmt.Sprint(f.ask("GET", "p", "/file/secret/password"))
		got += fmt.Sprint(f.ask("GET", "p", "/file/items/a/word"))
		got += fmt.Sprint(f.ask("GET", "p", "/file/absent/key"))
		if got != "p2<nil>p2<nil>here<nil>" {
			return errors.New(got)
		}
		return nil
	})
	if _, err := f.ask("GET", "p", "/file/secret/user"); err == nil {
		t.Error("a key that was removed is there")
	}
	if said := f.mustAsk("GET", "p", "/me"); !strings.Contains(said, "PASSWORD=p1") {
		t.Errorf("its environment has changed: %s", said)
	}
	// The data of a deleted Secret stays in running pods.
	if err := secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Delete(t.Context(), "later", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("an optional one goes", func(context.Context) error {
		if said, err := f.ask("GET", "p", "/file/absent/key"); err == nil {
			return errors.New(said)
		}
		return nil
	})
	if got := f.mustAsk("GET", "p", "/file/secret/password"); got != "p2" {
		t.Errorf("the password is %q", got)
	}
}

// TestPod_WithoutToken verifies that a pod without a token volume has no token.
func TestPod_WithoutToken(t *testing.T) {
	f := newFixture(t)
	f.create("p", `
automountServiceAccountToken: false
containers: [{name: main, args: [--address=:8080], ports: [{containerPort: 8080}], readinessProbe: {tcpSocket: {port: 8080}}}]
`)
	f.await("p", "is ready", isReady)
	if said, err := f.ask("GET", "p", "/file/var"); err == nil {
		t.Errorf("there is %s", said)
	}
}

// TestPod_ReachableServers verifies that a pod can connect to the API server and to the servers that the test allows, and to no others of this
// machine.
func TestPod_ReachableServers(t *testing.T) {
	f := newFixture(t)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			client, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(client, "hello")
			_ = client.Close()
		}
	}()
	defer server.Close()
	address := server.Addr().String()
	const spec = `{containers: [{name: main, args: [--address=:8080], ports: [{containerPort: 8080}], readinessProbe: {tcpSocket: {port: 8080}}}]}`
	f.create("a", spec)
	f.create("b", spec) // they have the same port
	for _, name := range []string{"a", "b"} {
		f.await(name, "is ready", isReady)
		if said := f.mustAsk("GET", name, "/dial", "address", address); !strings.Contains(said, "connection refused") {
			t.Errorf("what the pod may not reach says %q", said)
		}
	}
	if err := f.Reach(address); err != nil {
		t.Fatal(err)
	}
	f.create("c", spec)
	f.await("c", "is ready", isReady)
	for _, name := range []string{"a", "b", "c"} {
		if said := f.mustAsk("GET", name, "/dial", "address", address); said != "hello" {
			t.Errorf("what the pod may reach says %q", said)
		}
	}
	_ = server.Close()
	if said := f.mustAsk("GET", "a", "/dial", "address", address); !strings.Contains(said, "connection reset") {
		t.Errorf("what is gone says %q", said)
	}
}
