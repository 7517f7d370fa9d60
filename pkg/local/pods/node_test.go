// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "hub-agent" {
		fmt.Println(play(os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(operatortest.Shared.Main(m))
}

// play is an agent that prints its arguments, and its user on the management cluster. It is ready while its file says so, and exits when that says
// so.
func play(args []string) error {
	fmt.Println("arguments:", strings.Join(args, " "))
	flags := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		flags[name] = value
	}
	config, err := clientcmd.BuildConfigFromFlags("", flags["--management-kubeconfig"])
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("user:", self.Status.UserInfo.Username)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		fmt.Println("asked to end")
		for { // until it may
			if _, err := os.Stat(filepath.Join(filepath.Dir(os.Args[0]), "end")); err == nil {
				os.Exit(0)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return http.ListenAndServe(flags["--health-probe-bind-address"], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := os.ReadFile(flags["--spoke-kubeconfig"])
		switch {
		case string(data) == "end":
			os.Exit(3)
		case string(data) != "ready" || r.URL.Path != "/readyz":
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	}))
}

const agent = `
metadata: {name: agent}
spec:
  terminationGracePeriodSeconds: 30
  containers:
  - name: hub-agent
    image: clusterhub/hub-agent:local
    args: ["--health-probe-bind-address=:8082", "--detached", "--spoke-kubeconfig=/spoke/config/kubeconfig"]
    ports: [{name: health, containerPort: 8082}]
    readinessProbe: {httpGet: {path: /readyz, port: health}}
    volumeMounts: [{name: spoke-config, mountPath: /spoke/config, readOnly: true}]
  volumes:
  - name: spoke-config
    secret: {secretName: source}
`

func podOf(t *testing.T, text, namespace string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	pod.Namespace = namespace
	return pod
}

// TestRun verifies that a pod becomes a process, whose files follow its Secret.
func TestRun(t *testing.T) {
	namespace := "c-" + rand.String(5) + agentSuffix
	config := operatortest.Shared.Config(t, "management")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, dir, bin := t.Context(), t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "hub-agent"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- Run(running, Options{Cluster: config, BinDir: bin, Dir: filepath.Join(dir, "pods"), LogDir: filepath.Join(dir, "logs"), Log: t.Logf})
	}()
	// Before the directories of the test are deleted.
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(bin, "end"), nil, 0o600)
		end()
		if err, left := <-ended, folders(dir); err != nil || len(left) > 0 {
			t.Errorf("the node exited with %v, and left %q", err, left)
		}
		// A pod of another node does not concern this one.
		if err := client.CoreV1().Pods(namespace).Delete(context.Background(), "other", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	})

	pods, secrets := client.CoreV1().Pods(namespace), client.CoreV1().Secrets(namespace)
	for _, name := range []string{"agent", "other"} {
		pod := podOf(t, agent, namespace)
		pod.Name = name
		operatortest.Eventually(t, "the pod can be created", func() bool { // as soon as its ServiceAccount exists
			_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
			return err == nil
		})
	}
	await := func(name, what string, holds func(corev1.ContainerStatus) bool) {
		t.Helper()
		operatortest.Eventually(t, name+" "+what, func() bool {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			return err == nil && pod.Spec.NodeName == Name && len(pod.Status.ContainerStatuses) == 1 && holds(pod.Status.ContainerStatuses[0])
		})
	}
	await("agent", "waits for its Secret", func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && strings.Contains(c.State.Waiting.Message, `secret "source" not found`)
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "source"}, Data: map[string][]byte{"kubeconfig": []byte("not yet")}}
	secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change := func(text string) {
		t.Helper()
		secret.Data["kubeconfig"] = []byte(text)
		secret, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	await("agent", "runs", func(c corev1.ContainerStatus) bool { return c.State.Running != nil && !c.Ready && c.RestartCount == 0 })
	change("ready")
	await("agent", "is ready", func(c corev1.ContainerStatus) bool { return c.Ready && c.RestartCount == 0 })
	log := filepath.Join(dir, "logs", namespace+"_agent.log")
	said, err := os.ReadFile(log)
	for _, want := range []string{"--health-probe-bind-address=127.0.0.1:", "user: system:serviceaccount:" + namespace + ":default\n"} {
		if err != nil || !strings.Contains(string(said), want) {
			t.Errorf("got %s, %v, want %q", said, err, want)
		}
	}
	change("end")
	await("agent", "ends, and is started again", func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
	change("ready")
	await("agent", "is ready again", func(c corev1.ContainerStatus) bool { return c.Ready && c.RestartCount > 0 })
	pod, err := pods.Get(ctx, "agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The pod exists until its process has exited.
	process := processIn(filepath.Join(dir, "pods", string(pod.UID)), "hub-agent", "")
	if err := pods.Delete(ctx, "agent", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "its process gets SIGTERM", func() bool {
		said, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(said), "asked to end")
	})
	change("not ready")
	await("other", "is checked concurrently", func(c corev1.ContainerStatus) bool { return c.State.Running != nil && !c.Ready })
	change("ready")
	await("other", "is checked again", func(c corev1.ContainerStatus) bool { return c.Ready })
	if pod, err := pods.Get(ctx, "agent", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp == nil {
		t.Errorf("the pod is deleted before its process has exited: %v", err)
	}
	if err := os.WriteFile(filepath.Join(bin, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the pod is deleted", func() bool {
		_, err := pods.Get(ctx, "agent", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return false
		}
		if runs, err := process.Running(); err != nil || runs {
			t.Fatalf("the pod is deleted before its process: %v", err)
		}
		return true
	})
	operatortest.Eventually(t, "its files are deleted", func() bool {
		_, err := os.Stat(process.Dir)
		return errors.Is(err, fs.ErrNotExist)
	})
	await("other", "runs until the node ends", func(c corev1.ContainerStatus) bool { return c.Ready })
}

func folders(dir string) []string {
	found, _ := filepath.Glob(filepath.Join(dir, "pods", "*"))
	return found
}

// TestRefused: a user who may create a pod gets no other process of the user that runs the node, and none of this user's files.
func TestRefused(t *testing.T) {
	for change, want := range map[string][3]string{
		"":                   {"", "", ""},
		"another namespace":  {"", "default", "runs hub-operator in the namespace clusterhub-operator, and hub-agent in namespaces that end with"},
		"a namespace alike":  {"", "open-cluster-management-agent", "runs hub-operator in the namespace"},
		"another's image":    {"image: clusterhub/hub-agent:local=image: example.com/hub-agent:local", "", "runs pods of hub-operator"},
		"another program":    {"image: clusterhub/hub-agent:local=image: clusterhub/kubectl:local", "", "got clusterhub/kubectl:local"},
		"a path":             {"image: clusterhub/hub-agent:local=image: clusterhub/../hub-agent:local", "", "got clusterhub/../hub-agent"},
		"a command":          {"    args:=    command: [sh]\n    args:", "", "command, env and envFrom are not supported"},
		"an environment":     {"    args:=    env: [{name: LD_PRELOAD, value: /x}]\n    args:", "", "command, env and envFrom are not supported"},
		"a variable":         {"--detached=--cluster-name=$(HOME)", "", `"--cluster-name=$(HOME)"`},
		"a file":             {"/spoke/config/kubeconfig=/etc/passwd", "", `"--spoke-kubeconfig=/etc/passwd"`},
		"a file beside":      {"/spoke/config/kubeconfig=/spoke/config/../../x", "", "--spoke-kubeconfig=/spoke/config/../../x"},
		"a folder alike":     {"/spoke/config/kubeconfig=/spoke/configs/kubeconfig", "", "--spoke-kubeconfig=/spoke/configs"},
		"a folder of a node": {"secret: {secretName: source}=hostPath: {path: /}", "", "supports only Secret volumes"},
		"two containers":     {"  volumes:=  - {name: b, image: clusterhub/hub-agent:local}\n  volumes:", "", "runs pods of hub-operator"},
		"an init container":  {"  volumes:=  initContainers: [{name: b, image: clusterhub/hub-agent:local}]\n  volumes:", "", "runs pods of hub-operator"},
		"an argument alone":  {`"--detached"="/etc/passwd", "--detached"`, "", "/etc/passwd"},
		"a file elsewhere":   {"/spoke/config/kubeconfig=../x", "", "--spoke-kubeconfig=../x"},
		"not detached":       {`"--detached", =`, "", "runs clusterhub/hub-agent:local only with the argument --detached"},
		"detached, and not":  {`"--detached"="--detached", "--detached=false"`, "", `"--detached=false"`},
	} {
		text, namespace := agent, "c1-open-cluster-management-agent"
		if want[0] != "" {
			old, now, _ := strings.Cut(want[0], "=")
			text = strings.Replace(agent, old, now, 1)
			if text == agent {
				t.Fatalf("%s changes nothing", change)
			}
		}
		if want[1] != "" {
			namespace = want[1]
		}
		got := refused(podOf(t, text, namespace))
		if want[2] == "" && got != "" || !strings.Contains(got, want[2]) || want[2] != "" && got == "" {
			t.Errorf("%s: %q, want %q", change, got, want[2])
		}
	}
}
